function cell_add(metric, amount)
%CELL_ADD  Adds an amount to the cell of a metric, which the agent samples.
%   sonde.cell_add(steps, 1)
%
%   See also sonde.cell_set, sonde.emit
    if metric
        sonde_mex('cell_add', metric, amount);
    end
end
