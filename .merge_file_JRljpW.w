# Request and answer bodies are compressed with what HTTP calls gzip.
zlib = dependency('zlib', 
version: '>=1.2')

# What takes text from outside apart by hand; the fuzz targets compile it in for themselves.
put_parsers = files('put_parse.c')
telnet_parser = files('telnet.c')
aggregator = declare_dependency(
  link_with: static_library('aggregator',
    'acceptor.c', 
'arrow_write.c', 
'auth.c', 
'connections.c', 
'feeds.c', 
'json_body.c', 
'listen.c', 
'native.c', 
'native_arrow.c', 
'native_data.c', 
'openapi.c', 
'openmetrics.c', 
'opentsdb_admin.c', 
'opentsdb_annotation.c', 
'opentsdb_exp.c', 
'opentsdb_gexp.c', 
'opentsdb_last.c', 
'opentsdb_lookup.c', 
'opentsdb_metadata.c',
    'opentsdb_put.c', 
'opentsdb_query.c', 
'opentsdb_write.c', 
'process.c', 
'put_send.c', 
'request.c', 
'respond.c', 
'routes.c', 
'secrets.c', 
'series_list.c', 
'server.c',
    'sources.c', 
'stream.c', 
'workers.c', 
put_parsers, 
telnet_parser,
'telnet.c', 
'workers.c',
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
