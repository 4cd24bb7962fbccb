! Does 10 reductions of 100 doubles, and sends a message of 80 bytes from rank 0 to rank 1.
program traced
  MODULE_USED
  implicit none
  integer :: rank, i, ierror
  double precision :: from(100), to(100)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  from = 1
  do i = 1, 10
    call MPI_Allreduce(from, to, 100, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  end do
  if (rank == 0) call MPI_Send(from, 10, MPI_DOUBLE_PRECISION, 1, 5, MPI_COMM_WORLD, ierror)
  if (rank == 1) call MPI_Recv(to, 100, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Finalize(ierror)
end program
