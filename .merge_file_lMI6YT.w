foreach name : ['store', 
'crash', 
'damage', 
'events', 
'faults', 
'limits', 
'live', 
'newest', 
'reading', 
'work']
  test('store_' + name, 
executable('test_store_' + name, 
'test_' + name + '.c', 
dependencies: [cmocka, 
store]), 
suite: 'unit', 
timeout: 120)
endforeach
