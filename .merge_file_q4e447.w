# libFuzzer targets, 
one a parser; `make fuzz` builds and runs them.
foreach name : ['m', 
'json_plan', 
'time', 
'downsample']
  executable('fuzz_' + name, 
'fuzz_' + name + '.c', 
query_parsers, 
c_args: '-fsanitize=fuzzer', 
link_args: '-fsanitize=fuzzer',
    dependencies: [base, 
jansson])
endforeach
foreach name, 
parts : {'codec': codec, 
'hostlist': launch, 
'lines': ingest_text, 
'store': store}
  executable('fuzz_' + name, 
'fuzz_' + name + '.c', 
c_args: '-fsanitize=fuzzer', 
link_args: '-fsanitize=fuzzer', 
dependencies: parts)
endforeach
