// Command plugin runs the backend of an installed Grafana data source, and serves the addresses of
// the Grafana server.
//
//	plugin EXECUTABLE < settings.json
//
// The settings are those of the data source: url, basicAuthEnabled, basicAuthUser, jsonData,
// secureJsonData. It prints the address on which it listens, and ends when its standard input ends.
//
//	POST /api/ds/query                              takes the queries of a panel, returns frames
//	GET  /api/datasources/uid/UID/resources/PATH    calls the plugin's own routes
//	GET  /api/datasources/uid/UID/health            is the request of "Save & test"
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/genproto/pluginv2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const uid = "sonde"

type settings struct {
	URL              string            `json:"url"`
	BasicAuthEnabled bool              `json:"basicAuthEnabled"`
	BasicAuthUser    string            `json:"basicAuthUser"`
	JSONData         json.RawMessage   `json:"jsonData"`
	SecureJSONData   map[string]string `json:"secureJsonData"`
}

type plugin struct {
	context     *pluginv2.PluginContext
	data        pluginv2.DataClient
	resource    pluginv2.ResourceClient
	diagnostics pluginv2.DiagnosticsClient
}

// start runs the executable as Grafana does. The executable needs a cookie in its environment, and
// prints the address on which it listens in a line, "1|2|unix|SOCKET|grpc|…".
func start(executable string, s settings) (*plugin, error) {
	command := exec.Command(executable)
	command.Env = append(os.Environ(), "grafana_plugin_type=datasource", "PLUGIN_PROTOCOL_VERSIONS=2")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s does not print its address: %w", executable, err)
	}
	go io.Copy(io.Discard, output)
	words := strings.Split(strings.TrimSpace(line), "|")
	if len(words) < 5 || words[4] != "grpc" {
		return nil, fmt.Errorf("%s is not a data source: it prints %q", executable, line)
	}
	connection, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, words[2], words[3])
		}))
	if err != nil {
		return nil, err
	}
	return &plugin{
		context: &pluginv2.PluginContext{
			OrgId:    1,
			PluginId: "opentsdb",
			DataSourceInstanceSettings: &pluginv2.DataSourceInstanceSettings{
				Id: 1, Uid: uid, Name: "sonde", Url: s.URL, LastUpdatedMS: time.Now().UnixMilli(),
				BasicAuthEnabled: s.BasicAuthEnabled, BasicAuthUser: s.BasicAuthUser,
				JsonData: s.JSONData, DecryptedSecureJsonData: s.SecureJSONData,
			},
		},
		data:        pluginv2.NewDataClient(connection),
		resource:    pluginv2.NewResourceClient(connection),
		diagnostics: pluginv2.NewDiagnosticsClient(connection),
	}, nil
}

func (p *plugin) query(w http.ResponseWriter, r *http.Request) {
	var body struct {
		From    string            `json:"from"`
		To      string            `json:"to"`
		Queries []json.RawMessage `json:"queries"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from, errFrom := strconv.ParseInt(body.From, 10, 64)
	to, errTo := strconv.ParseInt(body.To, 10, 64)
	if errFrom != nil || errTo != nil {
		http.Error(w, "from and to must be milliseconds", http.StatusBadRequest)
		return
	}
	request := &pluginv2.QueryDataRequest{PluginContext: p.context}
	for _, raw := range body.Queries {
		var q struct {
			RefID         string  `json:"refId"`
			IntervalMS    float64 `json:"intervalMs"`
			MaxDataPoints int64   `json:"maxDataPoints"`
		}
		if err := json.Unmarshal(raw, &q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request.Queries = append(request.Queries, &pluginv2.DataQuery{
			RefId: q.RefID, MaxDataPoints: q.MaxDataPoints, IntervalMS: int64(q.IntervalMS), Json: raw,
			TimeRange: &pluginv2.TimeRange{FromEpochMS: from, ToEpochMS: to},
		})
	}
	answer, err := p.data.QueryData(r.Context(), request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The Grafana server has another status if only some queries fail. Its code in the browser treats
	// both alike.
	decoded, err := backend.FromProto().QueryDataResponse(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	status := http.StatusOK
	for _, response := range decoded.Responses {
		if response.Error != nil {
			status = http.StatusBadRequest
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(decoded)
}

func (p *plugin) callResource(w http.ResponseWriter, r *http.Request) {
	address := r.PathValue("path")
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	stream, err := p.resource.CallResource(r.Context(), &pluginv2.CallResourceRequest{
		PluginContext: p.context, Path: r.PathValue("path"), Method: r.Method, Url: address,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for begun := false; ; begun = true {
		part, err := stream.Recv()
		if err != nil {
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(int(part.Code))
		}
		w.Write(part.Body)
	}
}

func (p *plugin) health(w http.ResponseWriter, r *http.Request) {
	answer, err := p.diagnostics.CheckHealth(r.Context(),
		&pluginv2.CheckHealthRequest{PluginContext: p.context})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	status := http.StatusOK
	if answer.Status != pluginv2.CheckHealthResponse_OK {
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{
		"status": answer.Status.String(), "message": answer.Message,
	})
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: plugin EXECUTABLE < settings.json")
	}
	var s settings
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		log.Fatalf("the settings are not JSON: %v", err)
	}
	p, err := start(os.Args[1], s)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /api/ds/query", p.query)
	http.HandleFunc("/api/datasources/uid/"+uid+"/resources/{path...}", p.callResource)
	http.HandleFunc("GET /api/datasources/uid/"+uid+"/health", p.health)
	fmt.Printf("http://%s\n", listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(http.Serve(listener, nil))
}
