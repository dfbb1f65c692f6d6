import { type AnswerPart, answerParts, answerShape, lenient, listed, member, membersOf } from 'dealgate/paid'
import { documents } from 'dealgate/plugin'
import { z } from 'zod'

const positive = lenient.count.pipe(z.int().positive())
const { nullableText } = answerParts
const total = member('total_record_count', answerParts.count, 'Records that meet the filter, on all pages.')

export const offlineDeal = answerShape(membersOf(documents.offlineDeal))

export type OfflineDeal = z.output<typeof offlineDeal.shown>

const ofUpload = {
  ...membersOf(documents.upload, { duration: 'DurationDays' }),
  SourceFileUploadId: member('source_file_upload_id', { read: positive, shown: z.number().int() }),
  OfflineDeals: member('offline_deal', listed(offlineDeal, 'OfflineDeal')),
}

export const upload = answerShape(ofUpload)

export type ShownUpload = z.output<typeof upload.shown>

export const uploads = answerShape({
  Uploads: member('source_file_upload', listed(upload, 'Upload')),
  TotalRecordCount: total,
})

const keyedUpload = answerShape({
  ...ofUpload,
  IdempotencyKey: member(
    'idempotency_key',
    nullableText,
    'Of the request for it, empty for none; null where the service knows no such keys.',
  ),
})

export type KeyedUpload = z.output<typeof keyedUpload.shown>

export const keyedUploads = answerShape({ Uploads: member('source_file_upload', listed(keyedUpload, 'Upload')) })

export const bill = answerShape(membersOf(documents.bill))

export const bills = answerShape({
  Records: member('billing', listed(bill, 'Record')),
  TotalRecordCount: total,
})

const dealDetail = answerShape(
  membersOf(documents.dealDetail, { verified_provider: 'VerifiedProviderCode', status: 'StatusCode' }),
)

export const detail = answerShape({
  DaoThreshold: member('dao_threshold', answerParts.count),
  Deal: member('source_file_upload_deal', dealDetail),
})

const providerState = {
  read: lenient.text.transform((message) => /^Provider state: (.+)$/.exec(message)?.[1]),
  shown: z.string().optional(),
}

const dealLogEntry = answerShape({
  ...membersOf(documents.dealLogEntry),
  ProviderState: member(
    'on_chain_message',
    providerState,
    'The state that the message names behind `Provider state: `.',
  ),
})

export const dealLog = answerShape({ Entries: member('offline_deal_log', listed(dealLogEntry, 'Entry')) })

export const payment = answerShape(membersOf(documents.payment))

const coin = answerShape(membersOf(documents.coin))

export const walletFacts = answerShape({
  ...membersOf(documents.wallet),
  Coins: member('coins', listed(coin, 'Coin')),
})

export const mint = answerShape(membersOf(documents.mint))

export const uploaded = answerShape({
  ...membersOf(documents.uploadAnswer),
  SourceFileUploadId: member('source_file_upload_id', { read: positive, shown: z.number().int() }),
  PayloadCid: member('payload_cid', { read: lenient.text.pipe(z.string().min(1)), shown: z.string() }),
  Status: member('status', nullableText),
}).read

const openConfig = answerShape(membersOf(documents.systemParams))

/** The configuration of services with a sign-in alone. */
const signedInConfig = answerShape(membersOf(documents.signedInParams))

const config = z.object({
  Variant: z.enum(['A', 'B']),
  ...openConfig.shown.shape,
  ...signedInConfig.shown.partial().shape,
})

/** System parameters, with the variant that their names show: those of services without a sign-in are in upper case. */
export const systemConfig: AnswerPart<typeof config> = {
  shown: config,
  read: z.record(z.string(), z.unknown()).transform((params): z.output<typeof config> => {
    if (!('PAYMENT_CONTRACT_ADDRESS' in params))
      return { Variant: 'A', ...openConfig.read.parse(params), ...signedInConfig.read.parse(params) }
    const folded = Object.fromEntries(Object.entries(params).map(([name, value]) => [name.toLowerCase(), value]))
    return { Variant: 'B', ...openConfig.read.parse(folded) }
  }),
}

export const hostInfo = answerShape(membersOf(documents.hostInfo))
