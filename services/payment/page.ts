import { z } from 'zod'

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

/** The parameters of a list. */
export const pageQuery = {
  page_size: z.string().optional().describe('1 to 1000; 10 if absent.'),
  page_number: z.string().optional().describe('From 1.'),
  order_by: z.string().optional().describe('Name of a member.'),
  is_ascend: z.string().optional().describe('`y`: the least first.'),
}

/**
 * The page that a client asks for.
 * @param orders the columns that a list can be sorted by
 */
export function pageOf<Order extends string>(
  query: z.output<z.ZodObject<typeof pageQuery>>,
  orders: readonly Order[],
  usual: Order,
): Page<Order> {
  const size = Math.min(positive(query.page_size) ?? DEFAULT_SIZE, MAX_PAGE)
  const number = positive(query.page_number) ?? 1
  const orderBy = orders.find((order) => order === query.order_by) ?? usual
  return { size, offset: (number - 1) * size, orderBy, ascending: query.is_ascend === 'y' }
}

function positive(text: string | undefined): number | undefined {
  const value = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
  return value > 0 ? value : undefined
}
