module sender

go 1.19
