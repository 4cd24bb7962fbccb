# What reads text from outside; the fuzz targets compile it in for themselves.
query_parsers = files('aggregator_table.c', 
'duration.c', 
'exp_parse.c', 
'filter.c', 
'formula.c', 
'gexp.c', 
'parse_downsample.c', 
'parse_json.c', 
'parse_m.c', 
'parse_time.c',
  'time_zone.c')
# Functions and formulas over the results of queries.
query_expressions = files('exp_run.c', 
'gexp_run.c', 
'join.c')
# The operators are loops over arrays: -O3 turns them into vector code.
query_library = static_library('query', 
query_parsers, 
query_expressions, 
'aggregate.c', 
'columns.c', 
'context.c', 
'decoded.c', 
'downsample.c', 
'fold.c', 
'grid.c', 
'partial.c',
  'percentile.c', 
'points.c', 
'rate.c', 
'run.c', 
'select.c', 
'series.c', 
'sketch.c', 
'source.c', 
'suggest.c',
  include_directories: source_include, 
dependencies: [base, 
jansson], 
pic: true, 
override_options: ['optimization=3'])
query = declare_dependency(link_with: query_library, 
dependencies: [base, 
store, 
jansson])
