# The HTTP faces, 
held against tables of facts by a driver that speaks to a real server process.
make_store = executable('make_store', 
'make_store.c', 
dependencies: [store])
serve = executable('serve', 
'serve.c', 
dependencies: [aggregator])
conformance = environment({'SONDE_MAKE_STORE': make_store.full_path(), 
'SONDE_SERVE': serve.full_path(), 
'SONDE': sonde.full_path(), 
'SONDE_DASHBOARDS': meson.project_build_root() / 'grafana' / 'dashboards', 
'FAKE_NVML': fake_nvml.full_path(), 
'GPU_SCRIPT': meson.current_source_dir() / '../fake/two-gpus.txt', 
'PYTHONDONTWRITEBYTECODE': '1'})
foreach name : ['facts', 
'answers', 
'security', 
'abuse', 
'put', 
'telnet', 
'last', 
'openmetrics', 
'replay', 
'native', 
'admin', 
'grafana', 
'gexp', 
'exp', 
'annotations']
  test('conformance_' + name, 
find_program('python3'), 
args: [files('test_' + name + '.py')], 
env: conformance, 
depends: [make_store, 
serve, 
sonde, 
dashboards, 
fake_nvml],
    suite: 'conformance', 
timeout: 300)
endforeach
