test_dependencies = [cmocka, 
base, 
declare_dependency(include_directories: include_directories('.'))]
subdir('fake')
subdir('unit')
subdir('cli')
subdir('conformance')
subdir('format')
subdir('python')
if get_option('fuzz')
  subdir('fuzz')
endif
