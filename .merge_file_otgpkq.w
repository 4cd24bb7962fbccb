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
foreach name : ['gexp', 
'exp']
  executable('fuzz_' + name, 
'fuzz_' + name + '.c', 
query_parsers, 
query_expressions, 
c_args: '-fsanitize=fuzzer', 
link_args: '-fsanitize=fuzzer',
    dependencies: [base, 
jansson])
endforeach
foreach name, 
parts : {'amdgpu_metrics': collect, 
'codec': codec, 
'lines': ingest_text, 
'store': store, 
'wire': wire}
  executable('fuzz_' + name, 
'fuzz_' + name + '.c', 
c_args: '-fsanitize=fuzzer', 
link_args: '-fsanitize=fuzzer', 
dependencies: parts)
endforeach
# Parsers of the HTTP side, 
compiled in so that the fuzzer sees their branches.
foreach name, 
parts : {'put': put_parsers, 
'telnet': telnet_parser}
  executable('fuzz_' + name, 
'fuzz_' + name + '.c', 
parts, 
c_args: '-fsanitize=fuzzer', 
link_args: '-fsanitize=fuzzer',
    dependencies: [aggregator, 
ingest_text, 
jansson])
endforeach
