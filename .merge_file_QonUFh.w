# Two worlds: one in memory that stands in for the store, 
and real files, 
live and closed.
query_in_memory = declare_dependency(link_with: query_library, 
sources: 'world_memory.c', 
dependencies: [base, 
jansson])
query_on_files = declare_dependency(sources: 'world_files.c', 
dependencies: query)
foreach name : ['query_decoded', 
'query_engine', 
'query_facts', 
'query_filter', 
'query_limits', 
'query_oracle', 
'query_parse', 
'query_sketch', 
'query_time']
  test(name, 
executable('test_' + name, 
'test_' + name + '.c', 
dependencies: [test_dependencies, 
query_in_memory]), 
suite: 'unit')
endforeach
foreach name : ['query_decoded', 
'query_engine', 
'query_facts', 
'query_limits']
  on_files = executable('test_' + name + '_on_files', 
'test_' + name + '.c', 
dependencies: [test_dependencies, 
query_on_files])
  test(name + '_live', 
on_files, 
suite: 'unit')
  test(name + '_closed', 
on_files, 
env: ['WORLD_CLOSED=1'], 
suite: 'unit')
endforeach
