# find_package(sdc): sdc::sdc compiles and launches, sdc::sdcrt launches what was compiled
# ahead of time, sdc::kernels are the kernels of the project, sdc::static is sdc::sdc
# inside of the program.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/sdc-targets.cmake")
if(NOT TARGET sdc::kernels)
    add_library(sdc::kernels STATIC IMPORTED)
    set_target_properties(sdc::kernels PROPERTIES
        IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../libsdckernels.a"
        INTERFACE_LINK_LIBRARIES sdc::sdcrt)
endif()
set(static "${CMAKE_CURRENT_LIST_DIR}/../../libsdc.a")
if(NOT TARGET sdc::static AND EXISTS "${static}")
    add_library(sdc::static STATIC IMPORTED)
    set_target_properties(sdc::static PROPERTIES IMPORTED_LOCATION "${static}"
        INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../include"
        INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

# sdc_add_kernels(NAME FILE.tk [KERNEL kernel] [PREFIX name]
#                 [TARGETS cpu sm_90a ...] SIGNATURES text...
#                 [CONSTEXPRS BLOCK=1024 ...] [GRID "cdiv(n,BLOCK)"] [TUNE FILE.tune]
#                 [OPTIONS ...] [DEPENDS imported.tk ...])
#
# A library NAME with the kernel, compiled ahead of time for every target and signature,
# and its header, PREFIX.h (the kernel's name): what "sdc compile --header" makes. Who
# links NAME needs no compiler at run time. Without TARGETS it is the CPU alone.
if(NOT TARGET sdc::command)
    find_program(SDC_COMMAND sdc HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin")
    mark_as_advanced(SDC_COMMAND)
    if(SDC_COMMAND)
        add_executable(sdc::command IMPORTED)
        set_target_properties(sdc::command PROPERTIES IMPORTED_LOCATION "${SDC_COMMAND}")
    endif()
endif()
function(sdc_add_kernels name file)
    cmake_parse_arguments(PARSE_ARGV 2 A "" "KERNEL;PREFIX;GRID;TUNE"
        "TARGETS;SIGNATURES;CONSTEXPRS;OPTIONS;DEPENDS")
    if(A_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "sdc_add_kernels(${name}): does not know "
            "'${A_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT A_SIGNATURES)
        message(FATAL_ERROR "sdc_add_kernels(${name}): needs SIGNATURES, the types of "
            "the arguments; 'sdc check ${file}' prints some")
    endif()
    if(NOT TARGET sdc::command)
        message(FATAL_ERROR "sdc_add_kernels(${name}): no command sdc: set SDC_COMMAND")
    endif()
    get_filename_component(source "${file}" ABSOLUTE)
    get_filename_component(header "${file}" NAME_WE)
    if(A_PREFIX)
        set(header "${A_PREFIX}")
    elseif(A_KERNEL)
        set(header "${A_KERNEL}")
    endif()
    if(NOT A_TARGETS)
        set(A_TARGETS cpu)
    endif()
    list(JOIN A_TARGETS "," targets)
    set(args --target "${targets}")
    foreach(pair "-k;KERNEL" "--name;PREFIX" "-g;GRID" "--tune;TUNE")
        list(GET pair 0 option)
        list(GET pair 1 key)
        if(A_${key})
            list(APPEND args "${option}" "${A_${key}}")
        endif()
    endforeach()
    foreach(text IN LISTS A_CONSTEXPRS)
        list(APPEND args -c "${text}")
    endforeach()
    foreach(text IN LISTS A_SIGNATURES)
        list(APPEND args -s "${text}")
    endforeach()
    set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}.kernels")
    file(MAKE_DIRECTORY "${out}")
    add_custom_command(OUTPUT "${out}/${header}.o" "${out}/${header}.h"
        COMMAND sdc::command compile "${source}" ${args} ${A_OPTIONS}
            -o "${out}/${header}.o" --header "${out}/${header}.h"
        DEPENDS "${source}" ${A_TUNE} ${A_DEPENDS}
        WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
        COMMENT "kernels of ${file}" VERBATIM)
    set_source_files_properties("${out}/${header}.o" PROPERTIES
        EXTERNAL_OBJECT ON GENERATED ON)
    add_library(${name} STATIC "${out}/${header}.o" "${out}/${header}.h")
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(${name} INTERFACE "${out}")
    target_link_libraries(${name} INTERFACE sdc::sdcrt)
endfunction()
