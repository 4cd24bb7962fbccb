# Whole commands: Python's standard library drives the built binary. Each test has folders and a port of its own.
emitter = executable('emitter', 
'emitter.c', 
dependencies: emit)
python = find_program('python3')
foreach name : ['help', 
'config', 
'run', 
'faults', 
'query', 
'replay', 
'restart']
  test('cli-' + name, 
python, 
args: [files('test_' + name + '.py')], 
suite: 'cli', 
depends: [sonde, 
emitter], 
timeout: 300,
    env: {'SONDE': sonde.full_path(), 
'EMITTER': emitter.full_path(), 
'PYTHONDONTWRITEBYTECODE': '1'})
endforeach
test('cli-gpu', 
python, 
args: [files('test_gpu.py')], 
suite: 'cli', 
depends: [sonde, 
fake_nvml], 
timeout: 300,
  env: {'SONDE': sonde.full_path(), 
'FAKE_NVML': fake_nvml.full_path(), 
'PYTHONDONTWRITEBYTECODE': '1',
    'GPU_DATA': meson.project_source_root() / '../shared/data/gpu-bdb'})
