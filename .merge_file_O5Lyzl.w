project('sonde', 
'c',
  version: '0.1.0',
  license: 'Apache-2.0',
  meson_version: '>=1.0',
  default_options: ['c_std=gnu17', 
'warning_level=2', 
'buildtype=debugoptimized', 
'optimization=2', 
'default_library=static', 
'b_pie=true'])

cc = meson.get_compiler('c')
add_project_arguments(cc.get_supported_arguments(
  '-Wconversion', 
'-Wshadow', 
'-Wstrict-prototypes', 
'-Wmissing-prototypes', 
'-Wpointer-arith', 
'-Wundef', 
'-Wvla',
  '-fvisibility=hidden', 
'-fno-math-errno', 
'-fno-trapping-math'), 
language: 'c')
add_project_arguments('-D_GNU_SOURCE', 
'-DSONDE_VERSION="' + meson.project_version() + '"', 
language: 'c')

threads = dependency('threads')
math = cc.find_library('m', 
required: false)
uv = dependency('libuv', 
version: '>=1.40')
microhttpd = dependency('libmicrohttpd', 
version: '>=0.9.70')
jansson = dependency('jansson', 
version: '>=2.13')
zstd = dependency('libzstd', 
version: '>=1.4')
yaml = dependency('yaml-0.1', 
version: '>=0.2')
cmocka = dependency('cmocka', 
required: get_option('tests'))

public_include = include_directories('include')
source_include = include_directories('src')

# One static library a layer; each names the layers below it, 
so the build fails when a dependency points up.
subdir('src/base')
subdir('src/emit')
subdir('src/store')
subdir('src/ingest')
subdir('src/collect')
subdir('src/query')
subdir('src/agent')
subdir('src/aggregator')
subdir('src/launch')
subdir('src/cli')
subdir('grafana')
subdir('examples')
if cmocka.found()
  subdir('tests')
endif
subdir('bench')
