module sdc

go 1.21
