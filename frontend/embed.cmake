# Writes files of kernels_dsl as byte arrays, and a table of them with their names:
# cmake -DOUT=x.c -DFILES=a.tk,b.tk -DHEADER=declares_both.h -DTYPE=PreludeText
#       -DTABLE=prelude_texts -P
string(REPLACE "," ";" FILES "${FILES}")
set(text "/* Made from kernels_dsl by frontend/embed.cmake. */\n")
string(APPEND text "#include \"${HEADER}\"\n\n")
set(table "")
foreach(file IN LISTS FILES)
    cmake_path(GET file STEM name)
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND text "static const char text_${name}[] = { ${bytes}0 };\n")
    string(APPEND table "    { \"${name}\", text_${name}, sizeof text_${name} - 1 },\n")
endforeach()
string(APPEND text "\nconst ${TYPE} ${TABLE}[] = {\n${table}")
string(APPEND text "    { 0, 0, 0 },\n};\n")
file(WRITE "${OUT}" "${text}")
