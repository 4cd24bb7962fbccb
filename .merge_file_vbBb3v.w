# Request and answer bodies are compressed with what HTTP calls gzip.
zlib = dependency('zlib', 
version: '>=1.2')

aggregator = declare_dependency(
  link_with: static_library('aggregator',
    'acceptor.c', 
'auth.c', 
'connections.c', 
'feeds.c', 
'json_body.c', 
'listen.c', 
'native.c', 
'native_data.c', 
'openapi.c', 
'openmetrics.c', 
'opentsdb_admin.c', 
'opentsdb_last.c', 
'opentsdb_lookup.c', 
'opentsdb_metadata.c',
    'opentsdb_put.c', 
'opentsdb_query.c', 
'opentsdb_write.c', 
'process.c', 
'put_parse.c', 
'put_send.c', 
'request.c', 
'respond.c', 
'routes.c', 
'secrets.c', 
'series_list.c', 
'server.c',
    'sources.c', 
'stream.c', 
'telnet.c',
    dependencies: [base, 
query, 
store, 
microhttpd, 
zlib, 
jansson]),
  dependencies: [base, 
query, 
store, 
microhttpd, 
zlib, 
jansson])
