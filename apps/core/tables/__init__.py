"""Tables of pages: sorted, filtered, paged, with chosen columns and selected rows. See `DataTable`."""

from apps.core.tables.columns import TableAction, TableColumn, TableFilter
from apps.core.tables.data_table import DataTable
from apps.core.tables.row_pages import MAX_TABLE_ROWS

__all__ = ["MAX_TABLE_ROWS", "DataTable", "TableAction", "TableColumn", "TableFilter"]
