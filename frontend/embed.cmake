# Writes files of kernels_dsl as byte arrays, and a table of them with their names; what a
# file imports from others beside it stands in front of its text instead:
# cmake -DOUT=x.c -DFILES=a.tk,b.tk -DHEADER=declares_both.h -DTYPE=PreludeText
#       -DTABLE=prelude_texts -P
string(REPLACE "," ";" FILES "${FILES}")
set(text "/* Made from kernels_dsl by frontend/embed.cmake. */\n")
string(APPEND text "#include \"${HEADER}\"\n\n")
set(table "")
foreach(file IN LISTS FILES)
    cmake_path(GET file STEM name)
    file(READ "${file}" source)
    cmake_path(GET file PARENT_PATH folder)
    set(first "")
    while(source MATCHES "\nfrom ([a-z_]+) import [(][^)]*[)]\n")
        set(other "${CMAKE_MATCH_1}")
        string(REGEX REPLACE "\nfrom ${other} import [(][^)]*[)]\n" "\n" source
            "${source}")
        file(READ "${folder}/${other}.tk" imported)
        string(APPEND first "${imported}")
    endwhile()
    string(PREPEND source "${first}")
    string(HEX "${source}" hex)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND text "static const char text_${name}[] = { ${bytes}0 };\n")
    string(APPEND table "    { \"${name}\", text_${name}, sizeof text_${name} - 1 },\n")
endforeach()
string(APPEND text "\nconst ${TYPE} ${TABLE}[] = {\n${table}")
string(APPEND text "    { 0, 0, 0 },\n};\n")
file(WRITE "${OUT}" "${text}")
