function cell_set(metric, value)
%CELL_SET  Sets the cell of a metric, which the agent samples. A metric has points or a cell.
%   sonde.cell_set(temperature, 21.5)
%
%   See also sonde.cell_add, sonde.emit
    if metric
        sonde_mex('cell_set', metric, value);
    end
end
