module sonde

go 1.19
