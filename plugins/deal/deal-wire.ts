import { z } from 'zod'

/** Answers of the gateway's deal endpoints, parsed leniently: public deployments omit members or leave them empty. */

const text = z
  .union([z.string(), z.number(), z.boolean()])
  .nullish()
  .transform((value) => String(value ?? ''))

/** A deal as the gateway reports it; missing members are ''. */
export const gatewayDeal = z.object({
  filename: text,
  walletAddress: text,
  verifiedDeal: text,
  fastRetrieval: text,
  dataCid: text,
  minerId: text,
  price: text,
  duration: text,
  dealCid: text,
  /** Time since 1970 in digits; their number implies the unit. */
  timeStamp: text,
})
export type GatewayDeal = z.output<typeof gatewayDeal>

/** Envelope of every answer of these endpoints. */
export const envelope = z.object({ status: text, message: text, data: z.unknown() })

export const historyEntry = z.object({ status: text, message: text, data: gatewayDeal.nullish().catch(undefined) })

/** `null` when there are none, as Go encodes an empty slice. */
export const history = z.object({ deals: z.array(historyEntry).nullable() })

const count = z.coerce.number().nonnegative().catch(0)

export const progress = z.object({
  phase: text,
  bytesDone: count,
  bytesTotal: count,
  filesDone: count,
  filesTotal: count,
})
export type GatewayProgress = z.output<typeof progress>

const epochs = z.coerce.number().int()

export const dealState = z.object({
  dealCid: text,
  dataCid: text,
  pieceCid: text,
  /** Bytes. */
  pieceSize: count,
  minerId: text,
  /** State name of go-fil-markets, such as `StorageDealActive`. */
  state: z.string().min(1),
  message: text,
  startEpoch: epochs.optional().catch(undefined),
  endEpoch: epochs.optional().catch(undefined),
  /** The present epoch. */
  epoch: epochs.optional().catch(undefined),
  epochSeconds: z.coerce.number().positive().optional().catch(undefined),
})
export type GatewayDealState = z.output<typeof dealState>

/** A storage provider. Prices are decimals in fil per GiB and epoch. */
const gatewayProvider = z.object({
  miner_id: z.string().min(1),
  location: text,
  price: text,
  verified_price: text,
  min_piece_size: text,
  max_piece_size: text,
  offline_deal_available: z.boolean().catch(false),
  /** An integer; some deployments send other values. */
  score: z.coerce.number().transform(Math.round).pipe(z.int()).catch(0),
  status: text,
  contact_info: text,
  update_time_str: text,
})
export type GatewayProvider = z.output<typeof gatewayProvider>

export const providers = z.object({ providers: z.array(gatewayProvider).nullish() })
