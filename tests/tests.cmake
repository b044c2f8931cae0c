# The tests: every kind is found by globbing, so dropping a file adds a test.
#
#   tests/unit/test_*.c       one Check program each, linked with the folders' libraries
#   tests/interp/*.c          an interpreter of tile IR, for those that include it
#   tests/rules/*.c           the same, for rewrite rules against tests/rules/support
#   tests/run/*.c             one Check program each, linked with libsdc.so and tests/ref
#   tests/{ir,frontend,...}/  golden: files with a RUN: line, run by tests/golden.sh
#   tests/**/*.tir            each is also printed, read back and printed again
#   tests/record/*.txt        what shipped kernels do, loop by loop: tests/record/run
#   tests/to_code.sh          every .tir to code of every target, or refused
#   tests/twice.sh            a pass that runs once more changes nothing
#   tests/lint/*.sh           rules about the sources
#   tests/gen/*.c             one program: random kernels against tests/interp
#   tests/fuzz/*.c            libFuzzer programs; seeded replays in an ordinary build
#   tests/gpu/*.c             only with -DSDC_GPU=ON
#   tests/fake_cuda           a CUDA driver without a GPU, for tests of the runtime
#   tests/gpu/assemble        every kernel to machine code by ptxas; needs no GPU
#   tests/compat/*.c          kernels of others; SKIPPED where their sources are not
#   tests/train/*.c           one program: networks that learn, entirely with kernels_dsl
#   tests/package.sh          packages; tests/pages/run the blocks of README and tutorial
#   tests/perf/*.c            benchmarks: target "perf", never part of ctest

set(T "${ROOT}/tests")
set(TMP "${CMAKE_CURRENT_BINARY_DIR}/tests/tmp")
file(MAKE_DIRECTORY "${TMP}")

find_package(PkgConfig REQUIRED)
pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
find_program(BASH bash REQUIRED)

# Limits count CPU time, of each process of a test (limit.sh): a busy machine is no
# failure.  Instrumented code takes several times as much.  What is measured by the clock,
# ctest's TIMEOUT and Check's limits, is there for programs that wait for ever.
set(SLOWER 1)
if(SDC_SANITIZE)
    set(SLOWER 4)
endif()
set(WALL 1500)
set(CHECK_ENV "CK_TIMEOUT_MULTIPLIER=60;SDC_CACHE=off")

# limited(NAME LABEL SECONDS COMMAND...)
function(limited name label seconds)
    math(EXPR seconds "${seconds} * ${SLOWER}")
    add_test(NAME ${name} COMMAND ${BASH} "${T}/limit.sh" ${seconds} ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${WALL})
endfunction()

# ---------------------------------------------------------------- programs
function(test_program file label seconds)
    cmake_path(GET file STEM stem)
    set(target ${label}_${stem})
    add_executable(${target} ${file})
    target_compile_options(${target} PRIVATE ${WARN})
    target_compile_definitions(${target} PRIVATE SDC_ROOT="${ROOT}" SDC_TMP="${TMP}")
    target_include_directories(${target} PRIVATE "${ROOT}" "${GEN}")
    target_link_libraries(${target} PRIVATE ${ARGN} PkgConfig::CHECK m)
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
    limited(${label}/${stem} ${label} ${seconds} $<TARGET_FILE:${target}>)
    set_tests_properties(${label}/${stem} PROPERTIES ENVIRONMENT "${CHECK_ENV}")
endfunction()

# A test of internals gets the archives above the folders that it includes, and LLVM only
# where it asks for codegen or runtime: each such program is tens of megabytes to link.
# A test of the public interface or the command line gets libsdc.so.
function(parts_for file out)
    file(STRINGS ${file} api REGEX "#include \"runtime/(cli/|sdc)" LIMIT_COUNT 1)
    if(api AND TARGET cli)
        set(${out} cli PARENT_SCOPE)
        return()
    endif()
    file(STRINGS ${file} plan REGEX "#include \"runtime/nn/plan" LIMIT_COUNT 1)
    if(plan) # plain arithmetic
        set(${out} sdc_plan m PARENT_SCOPE)
        return()
    endif()
    file(STRINGS ${file} heavy REGEX "#include \"(codegen|runtime)/[^r]" LIMIT_COUNT 1)
    file(STRINGS ${file} rt REGEX "#include \"runtime/[^r]" LIMIT_COUNT 1)
    set(parts "")
    if(rt)
        list(APPEND parts sdc_runtime)
    endif()
    if(heavy)
        list(APPEND parts sdc_codegen)
    endif()
    list(APPEND parts sdc_frontend sdc_passes sdc_ir sdc_base sdcrt)
    set(found "")
    foreach(part IN LISTS parts)
        if(TARGET ${part})
            list(APPEND found ${part})
        endif()
    endforeach()
    set(${out} "${found}" PARENT_SCOPE)
endfunction()

# The interpreter of tile IR, the oracle of random tests: it knows the IR and the front
# end and nothing of passes, code generation and runtime.
file(GLOB files CONFIGURE_DEPENDS "${T}/interp/*.c")
add_library(sdc_interp STATIC ${files} "${T}/run/support/json.c")
target_compile_options(sdc_interp PRIVATE ${WARN} -O2)
target_include_directories(sdc_interp PUBLIC "${ROOT}" "${GEN}")
target_link_libraries(sdc_interp PUBLIC sdc_frontend sdc_ir sdc_base m)

file(GLOB files CONFIGURE_DEPENDS "${T}/unit/test_*.c")
foreach(file IN LISTS files)
    parts_for(${file} parts)
    file(STRINGS ${file} interp REGEX "#include \"tests/interp/" LIMIT_COUNT 1)
    if(interp)
        list(PREPEND parts sdc_interp)
    endif()
    test_program(${file} unit 300 ${parts})
endforeach()

# Rewrite rules against plain arithmetic: an evaluator of tile IR and a frame for them.
file(GLOB files CONFIGURE_DEPENDS "${T}/rules/support/*.c")
add_library(rules_support STATIC ${files})
target_compile_options(rules_support PRIVATE ${WARN} -O2)
target_include_directories(rules_support PRIVATE "${ROOT}")
target_link_libraries(rules_support PUBLIC sdc_passes sdc_ir sdc_base PkgConfig::CHECK m)
file(GLOB files CONFIGURE_DEPENDS "${T}/rules/*.c")
foreach(file IN LISTS files)
    cmake_path(GET file STEM stem)
    test_program(${file} rules 600 rules_support)
    set_tests_properties(rules/${stem} PROPERTIES LABELS unit)
endforeach()

# Hundreds of children each: a busy machine is not to end them.
set_tests_properties(unit/test_faults unit/test_fork unit/test_growth PROPERTIES
    TIMEOUT 900)

file(GLOB files CONFIGURE_DEPENDS "${T}/ref/*.c")
if(files)
    add_library(sdc_ref STATIC ${files})
    target_compile_options(sdc_ref PRIVATE ${WARN})
    target_include_directories(sdc_ref PRIVATE "${ROOT}")
    set(REF sdc_ref)
endif()

# Helpers shared by run tests: every file below tests/run/support.
file(GLOB files CONFIGURE_DEPENDS "${T}/run/support/*.c")
if(files AND TARGET libsdc)
    add_library(sdc_support STATIC ${files})
    target_compile_options(sdc_support PRIVATE ${WARN})
    target_include_directories(sdc_support PRIVATE "${ROOT}")
    target_compile_definitions(sdc_support PRIVATE SDC_ROOT="${ROOT}" SDC_TMP="${TMP}")
    target_link_libraries(sdc_support PUBLIC libsdc PkgConfig::CHECK
        PRIVATE sdc_interp sdc_passes)
    list(PREPEND REF sdc_support)
endif()
# A CUDA driver without a GPU, and one that is too old: $SDC_LIBCUDA names them.
if(EXISTS "${T}/fake_cuda/fake_cuda.c")
    foreach(name fakecuda fakecuda_old)
        add_library(${name} MODULE "${T}/fake_cuda/fake_cuda.c")
        target_include_directories(${name} PRIVATE "${ROOT}")
        target_compile_options(${name} PRIVATE ${WARN} -Wno-missing-prototypes)
        target_link_libraries(${name} PRIVATE Threads::Threads)
    endforeach()
    target_compile_definitions(fakecuda_old PRIVATE FAKE_OLD)
    add_dependencies(unit_test_cuda fakecuda fakecuda_old)
    add_dependencies(unit_test_api_misuse_rt fakecuda)
    add_dependencies(unit_test_tensor_maps fakecuda)
    add_dependencies(unit_test_hot_path fakecuda)
    add_dependencies(unit_test_stress fakecuda)
    add_dependencies(unit_test_fork fakecuda)
    add_dependencies(unit_test_small_stack fakecuda)
    # What lets allocations and file operations fail.
    add_library(faults MODULE "${T}/faults/shim.c")
    target_include_directories(faults PRIVATE "${ROOT}")
    target_compile_options(faults PRIVATE ${WARN} -Wno-missing-prototypes
        -fno-sanitize=all -fno-builtin)
    add_dependencies(unit_test_faults faults sdc)
    add_dependencies(unit_test_worker sdc)
    add_dependencies(unit_test_kernel_cache fakecuda)
endif()

if(TARGET libsdc)
    file(GLOB files CONFIGURE_DEPENDS "${T}/run/*.c")
    foreach(file IN LISTS files)
        test_program(${file} run 900 ${REF} libsdc)
    endforeach()
    # Some of them as code for a processor without AVX2 and FMA.
    foreach(stem language exp rows)
        limited(cpu/x86-64/${stem} cpu 900 $<TARGET_FILE:run_${stem}>)
        set_tests_properties(cpu/x86-64/${stem} PROPERTIES
            ENVIRONMENT "${CHECK_ENV};SDC_TEST_CPU=x86-64")
    endforeach()
    # The same programs in checked launches, none of which may find anything: every kernel
    # of kernels_dsl and of run/lang. Not lock, whose kernels read what others write on
    # purpose, and tables of operations and dots, whose kernels are neither.
    foreach(file IN LISTS files)
        cmake_path(GET file STEM stem)
        if(stem MATCHES "^(lock|accesses|dots_cpu|fp8|operations|tiles|twice)$")
            continue()
        endif()
        limited(checked/${stem} checked 900 $<TARGET_FILE:run_${stem}>)
        set_tests_properties(checked/${stem} PROPERTIES
            ENVIRONMENT "${CHECK_ENV};SDC_TEST_CHECK=1")
    endforeach()
    # The same programs with the fake driver: every kernel is compiled for a GPU and,
    # where there is a ptxas, assembled; nothing runs.
    find_program(PTXAS ptxas PATHS /usr/local/cuda/bin)
    foreach(file IN LISTS files)
        cmake_path(GET file STEM stem)
        add_dependencies(run_${stem} fakecuda)
        if(stem STREQUAL golden_json) # what it tests are types
            continue()
        endif()
        foreach(sm 80 90)
            # What the simulator runs as code for the same GPU, and takes long.
            if((sm EQUAL 90 AND
                stem MATCHES
                    "^(accesses|attention|dots|fp8|nn_.*|operations|tiles|twice)$") OR
               (sm EQUAL 80 AND stem MATCHES "^(dots|fp8|operations|twice)$"))
                continue()
            endif()
            limited(dry/sm_${sm}/${stem} dry 600 $<TARGET_FILE:run_${stem}>)
            set(env SDC_TEST_TARGET=cuda-dry SDC_CACHE=off CK_FORK=no FAKE_CUDA_SM=${sm}
                FAKE_CUDA_MIB=512 SDC_LIBCUDA=$<TARGET_FILE:fakecuda>)
            # Assembling takes longest: of the older one only what differs most.
            if(PTXAS AND (sm EQUAL 90 OR stem MATCHES "^(attention|gemm)$"))
                list(APPEND env FAKE_CUDA_PTXAS=${PTXAS})
            endif()
            set_tests_properties(dry/sm_${sm}/${stem} PROPERTIES ENVIRONMENT "${env}")
        endforeach()
    endforeach()
    # And in the interpreter of tile IR, as the front end makes it and after each pass.
    # Not those that launch nothing themselves or interpret already, fused kernels, whose
    # buffers are nowhere, programs that wait for others, and what takes 20 seconds.
    foreach(file IN LISTS files)
        cmake_path(GET file STEM stem)
        set(no "accesses|attention_grad|exp|fuse|golden_json|lock|nn|nn_attention"
            "nn_attention_options|nn_products|nn_rows|nn_sparse"
            "operations|tiles")
        list(JOIN no "|" no)
        if(stem MATCHES "^(${no})$")
            continue()
        endif()
        limited(oracle/${stem} run 600 $<TARGET_FILE:run_${stem}>)
        set_tests_properties(oracle/${stem} PROPERTIES
            ENVIRONMENT "SDC_TEST_TARGET=passes;SDC_CACHE=off;CK_FORK=no")
    endforeach()
    file(GLOB files CONFIGURE_DEPENDS "${T}/compat/*.c")
    foreach(file IN LISTS files)
        test_program(${file} compat 900 ${REF} libsdc)
        cmake_path(GET file STEM stem)
        set_tests_properties(compat/${stem} PROPERTIES SKIP_REGULAR_EXPRESSION SKIPPED)
    endforeach()
    if(SDC_GPU)
        file(GLOB files CONFIGURE_DEPENDS "${T}/gpu/*.c")
        list(FILTER files EXCLUDE REGEX "ptx_conformance") # needs no Check, see below
        foreach(file IN LISTS files)
            test_program(${file} gpu 600 ${REF} libsdc sdcrt)
        endforeach()
    endif()
    file(GLOB files CONFIGURE_DEPENDS "${T}/train/*.c")
    add_executable(train ${files})
    target_compile_options(train PRIVATE ${WARN})
    target_compile_definitions(train PRIVATE SDC_ROOT="${ROOT}")
    target_include_directories(train PRIVATE "${ROOT}")
    target_link_libraries(train PRIVATE libsdc sdcrt ${CMAKE_DL_LIBS} m Threads::Threads)
    limited(train/mlp train 3600 $<TARGET_FILE:train> --model mlp)
    limited(train/char train 3600 $<TARGET_FILE:train> --model char)
    limited(train/rerun train 3600 $<TARGET_FILE:train> --steps 3 --rerun)
    foreach(name mlp char rerun)
        set_tests_properties(train/${name} PROPERTIES SKIP_REGULAR_EXPRESSION SKIPPED
            ENVIRONMENT "SDC_CACHE=off")
    endforeach()
    # A block of a transformer on sdc_nn.h: a program that compares it with a reference,
    # and a library that tests/gpu/block measures beside torch.
    add_library(block_lib SHARED "${T}/block/block.c")
    set_target_properties(block_lib PROPERTIES OUTPUT_NAME block
        C_VISIBILITY_PRESET hidden)
    add_executable(block "${T}/block/main.c" "${T}/block/block.c")
    foreach(target block block_lib)
        target_compile_options(${target} PRIVATE ${WARN})
        target_include_directories(${target} PRIVATE "${ROOT}")
        target_link_libraries(${target} PRIVATE libsdc)
    endforeach()
    target_link_libraries(block PRIVATE ${REF} m)
    limited(run/block run 600 $<TARGET_FILE:block>)
    set_tests_properties(run/block PROPERTIES ENVIRONMENT "SDC_CACHE=off")
    file(GLOB files CONFIGURE_DEPENDS "${T}/perf/*.c")
    add_custom_target(perf)
    foreach(file IN LISTS files)
        cmake_path(GET file STEM stem)
        add_executable(perf_${stem} EXCLUDE_FROM_ALL ${file})
        target_compile_options(perf_${stem} PRIVATE ${WARN} -O3 -march=native)
        target_compile_definitions(perf_${stem} PRIVATE SDC_ROOT="${ROOT}")
        target_include_directories(perf_${stem} PRIVATE "${ROOT}")
        target_link_libraries(perf_${stem} PRIVATE ${REF} libsdc ${CMAKE_DL_LIBS} m
            Threads::Threads)
        add_dependencies(perf perf_${stem})
    endforeach()
endif()

# ---------------------------------------------------------------- fuzz targets
file(GLOB files CONFIGURE_DEPENDS "${T}/fuzz/*.c")
list(FILTER files EXCLUDE REGEX "/driver\\.c$")
foreach(file IN LISTS files)
    cmake_path(GET file STEM stem)
    set(seeds "${T}/fuzz/seeds/${stem}")
    set(runs 2000)
    if(stem MATCHES "tir|verify") # every .tir of the tests is a seed
        file(GLOB_RECURSE seeds CONFIGURE_DEPENDS "${T}/*.tir")
    elseif(stem MATCHES "code_tk") # short ones
        file(GLOB seeds CONFIGURE_DEPENDS "${T}/frontend/lower/*.tk")
    elseif(stem MATCHES "sema") # and every kernel
        file(GLOB seeds CONFIGURE_DEPENDS "${ROOT}/kernels_dsl/*.tk" "${T}/run/lang/*.tk"
            "${T}/frontend/module/*.py" "${seeds}/*")
    endif()
    if(stem MATCHES "code_|api") # each goes through LLVM
        set(runs 150)
    endif()
    parts_for(${file} parts)
    if(SDC_FUZZ)
        add_executable(${stem} ${file})
        target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
    else()
        add_executable(${stem} ${file} "${T}/fuzz/driver.c")
        limited(fuzz/${stem} fuzz 300 $<TARGET_FILE:${stem}> ${runs} ${seeds})
    endif()
    target_compile_options(${stem} PRIVATE ${WARN} -Wno-missing-prototypes)
    target_include_directories(${stem} PRIVATE "${ROOT}" "${GEN}")
    target_link_libraries(${stem} PRIVATE ${parts} m)
    target_link_options(${stem} PRIVATE -Wl,--gc-sections)
endforeach()

# ---------------------------------------------------------------- golden tests
if(TARGET sdc)
    set(patterns "")
    foreach(dir ir frontend errors passes codegen cli)
        foreach(ext tk tir py test)
            list(APPEND patterns "${T}/${dir}/*.${ext}")
        endforeach()
    endforeach()
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${patterns})
    foreach(file IN LISTS files)
        file(STRINGS ${file} run REGEX "RUN:" LIMIT_COUNT 1)
        if(run)
            file(RELATIVE_PATH name "${T}" ${file})
            limited(${name} golden 120 ${BASH} "${T}/golden.sh" $<TARGET_FILE:sdc>
                "${LLVM_BIN}" "${TMP}" ${file})
            set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
        endif()
    endforeach()

    # Not those that are meant to fail.
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${T}/*.tir")
    foreach(file IN LISTS files)
        file(STRINGS ${file} fails REGEX "ROUNDTRIP: off" LIMIT_COUNT 1)
        file(RELATIVE_PATH name "${T}" ${file})
        if(NOT fails AND NOT name MATCHES "^fuzz/|errors/")
            limited(roundtrip/${name} golden 60 ${BASH} "${T}/roundtrip.sh"
                $<TARGET_FILE:sdc> "${TMP}" ${file})
        endif()
    endforeach()
endif()

# ---------------------------------------------------------------- tile IR to code
if(TARGET sdc)
    foreach(name cpu sm_80 sm_90a)
        limited(to_code/${name} golden 600 ${BASH} "${T}/to_code.sh" $<TARGET_FILE:sdc>
            "${ROOT}" "${TMP}" ${name})
    endforeach()
    limited(passes/twice golden 120 ${BASH} "${T}/twice.sh" $<TARGET_FILE:sdc> "${ROOT}")
endif()

# ---------------------------------------------------------------- loops of all kinds
if(TARGET sdc)
    limited(loops/compile golden 3 ${BASH} "${T}/loops/compile" $<TARGET_FILE:sdc>)
    add_executable(near "${T}/loops/near.c")
    target_compile_options(near PRIVATE ${WARN})
    target_link_libraries(near PRIVATE m)
    foreach(sm 80 90)
        limited(loops/numbers/sm_${sm} sim 60 ${BASH} "${T}/loops/numbers"
            $<TARGET_FILE:sdc> $<TARGET_FILE:near>)
        set_tests_properties(loops/numbers/sm_${sm} PROPERTIES
            ENVIRONMENT
            "SDC_LIBCUDA=$<TARGET_FILE:simcuda>;FAKE_CUDA_SM=${sm};SIM_PROCESSORS=2")
    endforeach()
    # Loads of each address once: tiles of four and eight rows, of one element.
    limited(loops/numbers/words sim 60 ${BASH} "${T}/loops/numbers" $<TARGET_FILE:sdc>
        $<TARGET_FILE:near> w4a16 fp8_block)
    set_tests_properties(loops/numbers/words PROPERTIES
        ENVIRONMENT "SDC_LIBCUDA=$<TARGET_FILE:simcuda>;FAKE_CUDA_SM=90;CONFIGS=9")
    foreach(sm 80 90)
        limited(loops/more/sm_${sm} sim 60 ${BASH} "${T}/loops/numbers"
            $<TARGET_FILE:sdc> $<TARGET_FILE:near>)
        set(env SDC_LIBCUDA=$<TARGET_FILE:simcuda> FAKE_CUDA_SM=${sm} SIM_PROCESSORS=2
            CONFIGS=9 LIST=more)
        set_tests_properties(loops/more/sm_${sm} PROPERTIES ENVIRONMENT "${env}")
    endforeach()
endif()

# ---------------------------------------------------------------- machine code of GPUs
if(TARGET sdc)
    limited(gpu-compile/assemble gpu-compile 600 ${BASH} "${T}/gpu/assemble"
        $<TARGET_FILE:sdc>)
    set_tests_properties(gpu-compile/assemble PROPERTIES
        ENVIRONMENT "PTXSIM=$<TARGET_FILE:ptxsim>;SASSCHECK=$<TARGET_FILE:sasscheck>")
endif()

# ---------------------------------------------------------------- records
# What the PTX of shipped configurations does, loop by loop: one test for each file.
if(TARGET sdc)
    file(GLOB files CONFIGURE_DEPENDS "${T}/record/*.c")
    add_executable(ptxrecord ${files})
    target_compile_options(ptxrecord PRIVATE ${WARN})
    target_include_directories(ptxrecord PRIVATE "${ROOT}")
    target_link_libraries(ptxrecord PRIVATE sdc_base m)
    list(FILTER files EXCLUDE REGEX "/(diff|events|main|show)\\.c$")
    file(GLOB more CONFIGURE_DEPENDS "${T}/sass/*.c")
    add_executable(sasscheck ${more} ${files})
    target_compile_options(sasscheck PRIVATE ${WARN})
    target_include_directories(sasscheck PRIVATE "${ROOT}")
    target_link_libraries(sasscheck PRIVATE sdc_base m)
    limited(sass/small unit 60 ${BASH} "${T}/sass/small" "${CMAKE_CURRENT_BINARY_DIR}")
    file(STRINGS "${T}/gpu/shipped" lines REGEX "^[a-z]")
    list(TRANSFORM lines REPLACE " .*" "")
    list(REMOVE_DUPLICATES lines)
    foreach(name IN LISTS lines)
        limited(record/${name} record 300 ${BASH} "${T}/record/run" check
            "${CMAKE_CURRENT_BINARY_DIR}" ${name})
        # Assembled they are by gpu-compile/assemble.
        set_tests_properties(record/${name} PROPERTIES ENVIRONMENT "PTXAS=")
    endforeach()
    limited(record/words record 60 ${BASH} "${T}/record/words"
        "${CMAKE_CURRENT_BINARY_DIR}")
endif()

# ---------------------------------------------------------------- simulated GPU
# tests/sim/test_*.c are test programs; driver.c is a CUDA driver over the simulator, and
# the rest is the simulator.
file(GLOB files CONFIGURE_DEPENDS "${T}/sim/*.c")
list(FILTER files EXCLUDE REGEX "/(test_[a-z0-9_]*|ptxsim|driver|compile|layouts)\\.c$")
include(CheckCCompilerFlag)
check_c_compiler_flag(-march=x86-64-v3 HAS_X86_64_V3)
add_library(ptxsim_lib STATIC ${files})
set_target_properties(ptxsim_lib PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(ptxsim_lib PRIVATE "${ROOT}")
# With AVX2 and FMA, as libsdc's own code has them, but a * b + c is two roundings.
target_compile_options(ptxsim_lib PRIVATE ${WARN} -O2 -ffp-contract=off)
if(HAS_X86_64_V3)
    target_compile_options(ptxsim_lib PRIVATE -march=x86-64-v3)
endif()
target_link_libraries(ptxsim_lib PUBLIC m)
add_executable(ptxsim "${T}/sim/ptxsim.c")
target_compile_options(ptxsim PRIVATE ${WARN})
target_include_directories(ptxsim PRIVATE "${ROOT}")
target_link_libraries(ptxsim PRIVATE ptxsim_lib)
add_library(simcuda MODULE "${T}/sim/driver.c")
target_include_directories(simcuda PRIVATE "${ROOT}")
target_compile_options(simcuda PRIVATE ${WARN} -Wno-missing-prototypes)
target_link_libraries(simcuda PRIVATE ptxsim_lib Threads::Threads)

if(TARGET libsdc)
    file(GLOB files CONFIGURE_DEPENDS "${T}/sim/test_*.c")
    foreach(file IN LISTS files)
        cmake_path(GET file STEM stem)
        test_program(${file} sim 600 ${REF} libsdc sdcrt ptxsim_lib)
        target_sources(sim_${stem} PRIVATE "${T}/sim/compile.c"
            "${T}/sim/layouts.c")
        target_compile_definitions(sim_${stem} PRIVATE
            SIM_DRIVER="$<TARGET_FILE:simcuda>")
        add_dependencies(sim_${stem} simcuda)
    endforeach()
    # Every way the operands of wgmma lie, which a GPU has confirmed.
    add_executable(sim_operands "${T}/gpu/hopper.c")
    target_compile_options(sim_operands PRIVATE ${WARN})
    target_compile_definitions(sim_operands PRIVATE SDC_ROOT="${ROOT}" SDC_TMP="${TMP}")
    target_include_directories(sim_operands PRIVATE "${ROOT}")
    target_link_libraries(sim_operands PRIVATE libsdc sdcrt PkgConfig::CHECK m)
    add_dependencies(sim_operands simcuda)
    add_test(NAME sim/operands COMMAND sim_operands)
    set_tests_properties(sim/operands PROPERTIES LABELS sim TIMEOUT 300 ENVIRONMENT
        "SDC_LIBCUDA=$<TARGET_FILE:simcuda>;SDC_CACHE=off;CK_RUN_CASE=operands")
    # What asks a GPU about each instruction, the simulator asking itself: that it runs.
    add_executable(ptx_conformance "${T}/gpu/ptx_conformance.c")
    target_compile_options(ptx_conformance PRIVATE ${WARN})
    target_include_directories(ptx_conformance PRIVATE "${ROOT}")
    target_link_libraries(ptx_conformance PRIVATE sdcrt ptxsim_lib ${CMAKE_DL_LIBS}
        Threads::Threads)
    add_dependencies(ptx_conformance simcuda)
    add_test(NAME sim/ptx_conformance COMMAND ptx_conformance 128)
    set_tests_properties(sim/ptx_conformance PROPERTIES LABELS sim TIMEOUT 300
        ENVIRONMENT "SDC_LIBCUDA=$<TARGET_FILE:simcuda>")
    # Run tests with the driver of the simulator. Code for Hopper does most; of the older
    # one only what differs and is quick, of the newer one mma.sync by TMA and
    # sums of halves.
    foreach(stem accesses attention bent divide dots dropout elementwise fp8 gemm inplace
            language large large_products logarithm many_maps masks narrow nn_attention
            nn_attention_options nn_products nn_rows nn_sparse operations philox ragged
            rows short_of_memory tiles twice wraps)
        add_dependencies(run_${stem} simcuda)
        foreach(sm 80 89 90 100)
            if((sm EQUAL 80 AND
                NOT stem MATCHES
                    "divide|dots|fp8|lang|masks|narrow|operations|short_of|twice") OR
               (sm EQUAL 89 AND NOT stem STREQUAL "fp8") OR
               (sm EQUAL 100 AND NOT stem MATCHES "gemm|rows"))
                continue()
            endif()
            set(name sim/sm_${sm}/${stem})
            limited(${name} sim 600 $<TARGET_FILE:run_${stem}>)
            # Two SMs: programs of persistent kernels get several tiles.
            set(env SDC_TEST_TARGET=cuda SDC_CACHE=off CK_FORK=no FAKE_CUDA_SM=${sm}
                SIM_PROCESSORS=2 SDC_LIBCUDA=$<TARGET_FILE:simcuda>)
            set_tests_properties(${name} PROPERTIES ENVIRONMENT "${env}")
        endforeach()
    endforeach()
endif()

# ---------------------------------------------------------------- lint
# "sdc doctor" prints the generated pages of docs/: "ninja docs" writes them, the lint
# compares.
if(TARGET sdc)
    add_custom_target(docs COMMENT "generated pages of docs/"
        COMMAND ${BASH} "${T}/lint/docs.sh" "${ROOT}" "${CMAKE_CURRENT_BINARY_DIR}"
            --write
        VERBATIM)
    add_dependencies(docs sdc)
endif()

file(GLOB files CONFIGURE_DEPENDS "${T}/lint/*.sh")
foreach(file IN LISTS files)
    cmake_path(GET file STEM stem)
    limited(lint/${stem} lint 60 ${BASH} ${file} "${ROOT}" "${CMAKE_CURRENT_BINARY_DIR}")
endforeach()

# ---------------------------------------------------------------- Python
# The package is nobody's requirement: without python3, numpy or pytest it is SKIPPED.
if(TARGET libsdc)
    limited(python/package run 300 ${BASH} "${T}/python.sh" "${ROOT}"
        "${CMAKE_CURRENT_BINARY_DIR}")
    set_tests_properties(python/package PROPERTIES SKIP_RETURN_CODE 77)
endif()

find_program(PYTHON3 python3)
if(PYTHON3)
    limited(python/plots golden 60 ${PYTHON3} -m doctest "${T}/repro/svg.py")
    limited(python/conformance golden 60 ${PYTHON3} -m doctest
        "${T}/compat/suite/table.py" "${T}/compat/suite/runsuite.py")
endif()

# ---------------------------------------------------------------- other machines
if(TARGET sdc)
    limited(aarch64 golden 120 ${BASH} "${T}/aarch64.sh" "${ROOT}"
        "${CMAKE_CURRENT_BINARY_DIR}" "${LLVM_INCLUDE}" "${TMP}/aarch64")
    set_tests_properties(aarch64 PROPERTIES SKIP_RETURN_CODE 77)
endif()

# ---------------------------------------------------------------- packages, pages
# The packages are made and unpacked once; pages and examples run against what was
# unpacked. Instrumented code goes into no package.
if(TARGET sdc AND NOT SDC_SANITIZE)
    set(PACKAGE "${TMP}/package")
    limited(package/build package 300 ${BASH} "${T}/package.sh" "${ROOT}"
        "${CMAKE_CURRENT_BINARY_DIR}" "${PACKAGE}")
    set_tests_properties(package/build PROPERTIES FIXTURES_SETUP package)
    add_test(NAME pages/html COMMAND ${BASH} "${T}/pages/html"
        "${PACKAGE}/prefix/share/doc/sdc/html")
    set_tests_properties(pages/html PROPERTIES LABELS package TIMEOUT 300
        FIXTURES_REQUIRED package)
    foreach(language rust go)
        limited(bindings/${language} package 120 ${BASH} "${T}/bindings.sh" ${language}
            "${ROOT}" "${PACKAGE}/prefix" "${TMP}/bindings/${language}")
        set_tests_properties(bindings/${language} PROPERTIES SKIP_RETURN_CODE 77
            FIXTURES_REQUIRED package)
    endforeach()
    file(GLOB files CONFIGURE_DEPENDS "${ROOT}/README.md" "${ROOT}/docs/tutorial/*.md"
        "${ROOT}/docs/howto/*.md" "${ROOT}/docs/scheduling.md")
    foreach(file IN LISTS files)
        file(RELATIVE_PATH name "${ROOT}" ${file})
        string(REPLACE "/" "-" folder ${name})
        limited(pages/${name} package 120 ${BASH} "${T}/pages/run" ${file}
            "${TMP}/pages/${folder}")
        set_tests_properties(pages/${name} PROPERTIES FIXTURES_REQUIRED package
            ENVIRONMENT "PREFIX=${PACKAGE}/prefix;TARBALL=${PACKAGE}/sdc-*.tar.gz;\
SIMCUDA=$<TARGET_FILE:simcuda>")
    endforeach()
    # The README installs what was built.
    set_tests_properties(pages/README.md PROPERTIES
        ENVIRONMENT "BUILD=${CMAKE_CURRENT_BINARY_DIR}")
endif()

# ---------------------------------------------------------------- random programs
file(GLOB files CONFIGURE_DEPENDS "${T}/gen/*.c")
if(TARGET sdc_runtime)
    add_executable(randgen ${files}) # "gen" is the folder of generated sources
    target_compile_options(randgen PRIVATE ${WARN})
    target_include_directories(randgen PRIVATE "${ROOT}" "${GEN}")
    target_link_libraries(randgen PRIVATE sdc_interp sdc_runtime sdc_codegen sdc_frontend
        sdc_passes sdc_ir sdc_base sdcrt m)
    target_link_options(randgen PRIVATE -Wl,--gc-sections)
    limited(gen/cpu gen 300 $<TARGET_FILE:randgen> --seed 1 --count 600 --often 64)
    foreach(target sm_80 sm_90a) # code for GPUs alone: nothing runs
        limited(gen/${target} gen 200 $<TARGET_FILE:randgen>
            --target ${target} --count 300)
    endforeach()
    # Loops of matmuls, as code for Hopper on the simulator.
    if(TARGET simcuda)
        limited(gen/loops gen 200 $<TARGET_FILE:randgen>
            --loops --target cuda --seed 1000 --count 120)
        set_tests_properties(gen/loops PROPERTIES ENVIRONMENT
            "SDC_LIBCUDA=$<TARGET_FILE:simcuda>;FAKE_CUDA_SM=90")
    endif()
    # The reducer, on a failure that is made up: under 30 lines.
    limited(gen/reducer gen 60 $<TARGET_FILE:randgen> --reduce 12 --pretend tl.dot)
    set_tests_properties(gen/reducer PROPERTIES
        PASS_REGULAR_EXPRESSION "# ([0-9]|[12][0-9]) lines after")
endif()
