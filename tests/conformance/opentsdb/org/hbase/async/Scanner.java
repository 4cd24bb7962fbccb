// Scanner.java - reads the rows of a table in memory in the order of their keys, from a start key
// up to, but without, a stop key.
package org.hbase.async;

import com.stumbleupon.async.Deferred;

import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Map;
import java.util.SortedMap;
import java.util.regex.Pattern;

public final class Scanner {
    private final HBaseClient client;
    private final byte[] table;
    private byte[] start = new byte[0], stop = new byte[0], family;
    private byte[][] qualifiers;
    private ScanFilter filter;
    private int rowsAtOnce = 128;
    private byte[] last;
    private boolean finished;

    Scanner(HBaseClient client, byte[] table) {
        this.client = client;
        this.table = table;
    }

    public void setStartKey(byte[] key) { start = key; }

    public void setStopKey(byte[] key) { stop = key; }

    public void setFamily(byte[] name) { family = name; }

    public void setQualifier(byte[] name) { qualifiers = new byte[][] {name}; }

    public void setMaxNumRows(int rows) { rowsAtOnce = rows; }

    /** The test does not configure OpenTSDB to restrict scans by the time stamps of cells. */
    public void setTimeRange(long from, long to) { throw new UnsupportedOperationException("setTimeRange"); }

    public void setFilter(ScanFilter f) { filter = f; }

    public ScanFilter getFilter() { return filter; }

    public void setKeyRegexp(String regexp, Charset charset) { filter = new KeyRegexpFilter(regexp, charset); }

    public byte[] getCurrentKey() { return last == null ? start : last; }

    public Deferred<Object> close() {
        finished = true;
        return Deferred.fromResult(null);
    }

    public Deferred<ArrayList<ArrayList<KeyValue>>> nextRows() {
        ArrayList<ArrayList<KeyValue>> rows = new ArrayList<>();
        HBaseClient.Table all = client.table(table);
        synchronized (all) {
            SortedMap<byte[], HBaseClient.Row> rest = last == null ? all.tailMap(start, true) : all.tailMap(last, false);
            for (Map.Entry<byte[], HBaseClient.Row> row : rest.entrySet()) {
                if (finished || rows.size() == rowsAtOnce)
                    break;
                if (stop.length > 0 && HBaseClient.BYTES.compare(row.getKey(), stop) >= 0) {
                    finished = true;
                    break;
                }
                last = row.getKey();
                ArrayList<KeyValue> cells = row.getValue().cells(row.getKey(), family, qualifiers);
                if (!cells.isEmpty() && passes(filter, row.getKey()))
                    rows.add(cells);
            }
        }
        return Deferred.fromResult(rows.isEmpty() ? null : rows);
    }

    private static boolean passes(ScanFilter filter, byte[] key) {
        if (filter == null)
            return true;
        if (filter instanceof KeyRegexpFilter) {
            KeyRegexpFilter regexp = (KeyRegexpFilter) filter;
            String pattern = new String(regexp.getRegexp(), regexp.getCharset());
            return Pattern.compile(pattern, Pattern.DOTALL).matcher(new String(key, regexp.getCharset())).find();
        }
        if (filter instanceof FilterList) // OpenTSDB makes only lists whose filters must all pass
            return ((FilterList) filter).filters().stream().allMatch(f -> passes(f, key));
        throw new UnsupportedOperationException(filter.getClass().getName());
    }
}
