# Makes a C file of a text: each line a literal. -v name=… is what the string is called.
BEGIN {
        print "/* Made from a file beside the sources. */"
        printf "extern const char %s[];\nconst char %s[] =\n", name, name
}
{
        gsub(/\\/, "&&")
        gsub(/"/, "\\\\&")
        printf "\"%s\\n\"\n", $0
}
END {
        print ";"
}
