# Math functions for GPUs, out of libclc's bitcode for NVPTX, as byte arrays:
#   cmake -DOUT=x.c -DCLC=nvptx64--.bc -DBIN=/llvm/bin -DTMP=dir -P embed_math.cmake
#
# libclc is one module of 5 MB, too large to link into every kernel; each function becomes
# a module of its own with the tables that it reads and nothing else. The tables go from
# constant to global memory: the lanes of a warp look up different entries, which the
# constant cache would serve one by one. Without CLC the list is empty.
# Of fp32 those that sdc has not itself (codegen/gen_nv_math.h).
set(functions _Z4fdimff _Z9nextafterff _Z4pownfi _Z5ldexpfi)
foreach(name erf log log2 sin cos tanh sinh cosh tan asin acos atan asinh acosh
        atanh expm1 exp10 log1p log10 cbrt erfc lgamma)
    string(LENGTH ${name} n)
    list(APPEND functions _Z${n}${name}d)
endforeach()
foreach(name atan2 pow fmod remainder hypot fdim nextafter)
    string(LENGTH ${name} n)
    list(APPEND functions _Z${n}${name}dd)
endforeach()
list(APPEND functions _Z4powndi _Z5ldexpdi)

function(tool)
    execute_process(COMMAND ${BIN}/${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(text "/* Made from libclc by codegen/embed_math.cmake. */\n")
string(APPEND text "#include \"codegen/nv_math_code.h\"\n\n")
set(table "")
if(CLC)
    file(MAKE_DIRECTORY "${TMP}")
    list(TRANSFORM functions PREPEND --func= OUTPUT_VARIABLE wanted)
    tool(llvm-extract --recursive --keep-const-init ${wanted} ${CLC} -S -o ${TMP}/all.ll)
    file(READ "${TMP}/all.ll" ir)
    string(REPLACE "addrspace(4)" "addrspace(1)" ir "${ir}")
    # What says how libclc was compiled would bind its functions to that target.
    set(compiled
        frame-pointer no-trapping-math stack-protector-buffer-size target-features
        target-cpu)
    foreach(name IN LISTS compiled)
        string(REGEX REPLACE "\"${name}\"=\"[^\"]*\"" "" ir "${ir}")
    endforeach()
    string(REGEX REPLACE "\n!(llvm|opencl)[.a-z_]* = [^\n]*" "" ir "${ir}")
    # Of numbers that do not fit, such as NaN, libclc makes an index and then drops what
    # it looked up: the index must stay inside of the table.
    foreach(from double:f64 float:f32)
        string(REPLACE ":" ";" from ${from})
        list(GET from 0 type)
        list(GET from 1 short)
        foreach(to i32 i64)
            set(name "@llvm.fptosi.sat.${to}.${short}")
            string(REGEX REPLACE "= fptosi ${type} (%[0-9]+) to ${to}"
                "= call ${to} ${name}(${type} \\1)" ir "${ir}")
            string(APPEND ir "declare ${to} ${name}(${type})\n")
        endforeach()
    endforeach()
    file(WRITE "${TMP}/all.ll" "${ir}")
    string(JOIN "," api ${functions})
    tool(opt -passes=internalize,globaldce -internalize-public-api-list=${api}
        ${TMP}/all.ll -o ${TMP}/all.bc)
    foreach(f IN LISTS functions)
        tool(llvm-extract --recursive --keep-const-init --func=${f} ${TMP}/all.bc
            -o ${TMP}/part.bc)
        tool(opt -passes=internalize,globaldce,strip-dead-prototypes
            -internalize-public-api-list=${f} ${TMP}/part.bc -o ${TMP}/${f}.bc)
        file(READ "${TMP}/${f}.bc" hex HEX)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
        string(APPEND text "static const unsigned char code${f}[] = { ${bytes} };\n")
        string(APPEND table "    { \"${f}\", code${f}, sizeof code${f} },\n")
    endforeach()
endif()
string(APPEND text "\nconst NvMathCode nv_math_codes[] = {\n${table}")
string(APPEND text "    { 0, 0, 0 },\n};\n")
file(WRITE "${OUT}" "${text}")
