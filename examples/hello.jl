import Sonde

function main()
    loss = Sonde.gauge("loss", "model" => "sin")
    step_seconds = Sonde.gauge("step_seconds"; unit="seconds")
    for epoch in 1:3
        Sonde.span("epoch", "number" => epoch) do
            for step in 1:10
                Sonde.timer(() -> sleep(0.02), step_seconds)
                Sonde.emit(loss, 1 / (epoch * step))
            end
        end
    end
end

main()
