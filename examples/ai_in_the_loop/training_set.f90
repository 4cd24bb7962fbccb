! training_set X POINTS SEED: points around X and their sines. Each rank makes POINTS points; rank 0
! prints all of them.
program training_set
    use mpi
    use sonde
    implicit none
    double precision, parameter :: width = 0.6d0 ! beyond X in both directions
    integer :: rank, ranks, points, seed, seeds, status, i
    double precision :: x
    double precision, allocatable :: own(:), all(:)
    integer(sonde_handle) :: made
    character(32) :: words(3)

    call MPI_Init(status)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, status)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, status)
    do i = 1, 3
        call get_command_argument(i, words(i))
    end do
    read (words(1), *) x
    read (words(2), *) points
    read (words(3), *) seed
    made = sonde_counter('training_points')

    call sonde_span_begin('points')
    allocate (own(points), all(points*ranks))
    call random_seed(size=seeds)
    call random_seed(put=[(1000*seed + 10*rank + i, i=1, seeds)])
    call random_number(own)
    own = x + width*(2*own - 1)
    call sonde_add(made, points)
    call MPI_Gather(own, points, MPI_DOUBLE_PRECISION, all, points, MPI_DOUBLE_PRECISION, 0, &
                    MPI_COMM_WORLD, status)
    call sonde_span_end()
    if (rank == 0) then
        do i = 1, points*ranks
            print '(2es25.16)', all(i), sin(all(i))
        end do
    end if
    call MPI_Finalize(status)
end program
