#include "export/csv_cells.h"

static bool needs_quotes(struct str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == ',' || text.data[i] == '"' || text.data[i] == '\n' ||
            text.data[i] == '\r')
            return true;
    return text.size && str_trim(text).size != text.size;
}

void csv_add_cell(struct buf *out, struct str text)
{
    if (!needs_quotes(text)) {
        buf_add(out, text.data, text.size);
        return;
    }
    buf_add_char(out, '"');
    while (text.data) {
        struct str part = str_cut(&text, '"');
        buf_add(out, part.data, part.size);
        if (text.data)
            buf_add_str(out, STR("\"\""));
    }
    buf_add_char(out, '"');
}
