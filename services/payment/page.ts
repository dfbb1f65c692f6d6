/** Most records of a page. The interface names no bound; a page of more costs memory for no client. */
const MAX_PAGE = 1000
const DEFAULT_SIZE = 10

/** A page of a list, by the rules of the interface: an invalid value is as good as none. */
export interface Page<Order extends string> {
  /** 1 to 1000. */
  readonly size: number
  readonly offset: number
  readonly orderBy: Order
  readonly ascending: boolean
}

/**
 * Reads `page_size`, `page_number`, `order_by` and `is_ascend`, of which only `y` means yes.
 * @param orders the columns that a list can be sorted by
 */
export function readPage<Order extends string>(
  query: URLSearchParams,
  orders: readonly Order[],
  usual: Order,
): Page<Order> {
  const size = Math.min(positive(query.get('page_size')) ?? DEFAULT_SIZE, MAX_PAGE)
  const number = positive(query.get('page_number')) ?? 1
  const orderBy = orders.find((order) => order === query.get('order_by')) ?? usual
  return { size, offset: (number - 1) * size, orderBy, ascending: query.get('is_ascend') === 'y' }
}

function positive(text: string | null): number | undefined {
  const value = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
  return value > 0 ? value : undefined
}
