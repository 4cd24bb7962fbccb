// HBaseClient.java - keeps HBase's tables in memory, behind the interface through which OpenTSDB
// uses HBase.
//
// The class path names this class before the asynchbase library, whose requests, key-values and
// filters it uses. So OpenTSDB computes with its own released code; only the storage below it is
// replaced. The tables keep one version of each cell.
package org.hbase.async;

import com.stumbleupon.async.Deferred;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

public final class HBaseClient {
    public static final byte[] EMPTY_ARRAY = new byte[0];
    static final Comparator<byte[]> BYTES = Bytes.MEMCMP;

    /** A row: family → qualifier → value, both in byte order, as HBase returns them. */
    static final class Row extends TreeMap<byte[], TreeMap<byte[], byte[]>> {
        private static final long serialVersionUID = 1;

        Row() { super(BYTES); }

        byte[] get(byte[] family, byte[] qualifier) {
            TreeMap<byte[], byte[]> cells = get(family);
            return cells == null ? null : cells.get(qualifier);
        }

        void put(byte[] family, byte[] qualifier, byte[] value) {
            computeIfAbsent(family, f -> new TreeMap<>(BYTES)).put(qualifier, value);
        }

        /** Returns the cells of a family with the given qualifiers; null selects all of them. */
        ArrayList<KeyValue> cells(byte[] key, byte[] family, byte[][] qualifiers) {
            ArrayList<KeyValue> found = new ArrayList<>();
            for (Map.Entry<byte[], TreeMap<byte[], byte[]>> f : entrySet()) {
                if (family != null && !Arrays.equals(family, f.getKey()))
                    continue;
                for (Map.Entry<byte[], byte[]> cell : f.getValue().entrySet())
                    if (qualifiers == null || contains(qualifiers, cell.getKey()))
                        found.add(new KeyValue(key, f.getKey(), cell.getKey(), cell.getValue()));
            }
            return found;
        }

        private static boolean contains(byte[][] qualifiers, byte[] qualifier) {
            return Arrays.stream(qualifiers).anyMatch(q -> Arrays.equals(q, qualifier));
        }
    }

    static final class Table extends TreeMap<byte[], Row> {
        private static final long serialVersionUID = 1;

        Table() { super(BYTES); }

        Row row(byte[] key) { return computeIfAbsent(key, k -> new Row()); }
    }

    private final Map<String, Table> tables = Collections.synchronizedMap(new HashMap<>());
    private short flushInterval = 1000;

    public HBaseClient(Config config) {}

    Table table(byte[] name) { return tables.computeIfAbsent(Bytes.pretty(name), n -> new Table()); }

    public Deferred<Object> ensureTableExists(String table) { return Deferred.fromResult(null); }

    public Deferred<Object> ensureTableExists(byte[] table) { return Deferred.fromResult(null); }

    public Deferred<Object> prefetchMeta(byte[] table) { return Deferred.fromResult(null); }

    public Deferred<Object> flush() { return Deferred.fromResult(null); }

    public Deferred<Object> shutdown() { return Deferred.fromResult(null); }

    public short getFlushInterval() { return flushInterval; }

    public short setFlushInterval(short interval) {
        short before = flushInterval;
        flushInterval = interval;
        return before;
    }

    public ClientStats stats() {
        return new ClientStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                com.google.common.cache.CacheBuilder.newBuilder().build().stats(), 0, 0, 0, 0, 0, 0);
    }

    public List<RegionClientStats> regionStats() { return new ArrayList<>(); }

    public Scanner newScanner(byte[] table) { return new Scanner(this, table); }

    public Deferred<ArrayList<KeyValue>> get(GetRequest request) {
        Table table = table(request.table());
        synchronized (table) {
            Row row = table.get(request.key());
            return Deferred.fromResult(
                    row == null ? new ArrayList<>() : row.cells(request.key(), request.family(), request.qualifiers()));
        }
    }

    public Deferred<List<GetResultOrException>> get(List<GetRequest> requests) {
        List<GetResultOrException> results = new ArrayList<>();
        for (GetRequest request : requests)
            try {
                results.add(new GetResultOrException(get(request).join()));
            } catch (Exception e) {
                results.add(new GetResultOrException(e));
            }
        return Deferred.fromResult(results);
    }

    public Deferred<Object> put(PutRequest request) {
        Table table = table(request.table());
        synchronized (table) {
            for (int i = 0; i < request.qualifiers().length; i++)
                table.row(request.key()).put(request.family(), request.qualifiers()[i], request.values()[i]);
        }
        return Deferred.fromResult(null);
    }

    public Deferred<Object> append(AppendRequest request) {
        Table table = table(request.table());
        synchronized (table) {
            Row row = table.row(request.key());
            for (int i = 0; i < request.qualifiers().length; i++) {
                byte[] before = row.get(request.family(), request.qualifiers()[i]), more = request.values()[i];
                byte[] after = before == null ? more : Arrays.copyOf(before, before.length + more.length);
                if (before != null)
                    System.arraycopy(more, 0, after, before.length, more.length);
                row.put(request.family(), request.qualifiers()[i], after);
            }
        }
        return Deferred.fromResult(null);
    }

    /** Writes the cell if its value is `expected`; an empty one means that it must not exist. */
    public Deferred<Boolean> compareAndSet(PutRequest request, byte[] expected) {
        Table table = table(request.table());
        synchronized (table) {
            byte[] before = table.row(request.key()).get(request.family(), request.qualifier());
            boolean equal = Arrays.equals(before == null ? new byte[0] : before, expected == null ? new byte[0] : expected);
            if (equal)
                table.row(request.key()).put(request.family(), request.qualifier(), request.value());
            return Deferred.fromResult(equal);
        }
    }

    public Deferred<Long> atomicIncrement(AtomicIncrementRequest request) {
        Table table = table(request.table());
        synchronized (table) {
            Row row = table.row(request.key());
            byte[] before = row.get(request.family(), request.qualifier());
            long now = (before == null ? 0 : Bytes.getLong(before)) + request.getAmount();
            row.put(request.family(), request.qualifier(), Bytes.fromLong(now));
            return Deferred.fromResult(now);
        }
    }

    /** Deletes cells: without a family the whole row, without qualifiers the whole family. */
    public Deferred<Object> delete(DeleteRequest request) {
        Table table = table(request.table());
        synchronized (table) {
            Row row = table.get(request.key());
            if (row == null)
                return Deferred.fromResult(null);
            if (request.family() == DeleteRequest.WHOLE_ROW || request.family() == null) {
                table.remove(request.key());
            } else if (request.qualifiers() == null || request.qualifiers().length == 0 || request.qualifiers()[0].length == 0) {
                row.remove(request.family());
            } else if (row.get(request.family()) != null) {
                for (byte[] qualifier : request.qualifiers())
                    row.get(request.family()).remove(qualifier);
                if (row.get(request.family()).isEmpty())
                    row.remove(request.family());
            }
            if (row.isEmpty())
                table.remove(request.key());
        }
        return Deferred.fromResult(null);
    }
}
