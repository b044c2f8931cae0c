#!/usr/bin/env bash
# The prelude (kernels_dsl/lib/*.tk) as C data, to be carried inside the compiler:
# embed.sh FILE.tk... >prelude_data.h
#
# For each file NAME.tk an array prelude_NAME[], ending in 0, and a line PRELUDE_FILE(NAME)
# in the list PRELUDE_FILES. Numbers, because a string constant of C may be too long.
set -euo pipefail
echo "/* Made from kernels_dsl/lib by frontend/embed.sh. */"
list=
for file in "$@"; do
    name=$(basename "$file" .tk)
    echo "static const char prelude_$name[] = {"
    od -An -v -td1 -w16 "$file" | sed -E 's/ +/,/g; s/^,//; s/$/,/'
    echo "0};"
    list+=" PRELUDE_FILE($name)"
done
echo "#define PRELUDE_FILES$list"
