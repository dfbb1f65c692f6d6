import { S3Error } from '../../common/errors/s3-error.js'
import { malformed, requireChildren, wholeNumberText } from '../../common/xml/strict-xml.js'
import { childText, parseXml, type XmlNode } from '../../common/xml/xml.js'
import type { RestoreOrder } from '../../plugins/forms/storage-class.js'

const TIERS = ['Standard', 'Bulk', 'Expedited'] as const
/** About 5,500 years, so that the year of the expiry date has four digits, as dates in headers require. */
const MAX_DAYS = 2_000_000
/** Elements of queries, which S3 has discontinued. */
const QUERY = ['Type', 'SelectParameters', 'OutputLocation']

/**
 * Reads the body of RestoreObject, which may be empty. Without Days the object stays restored.
 * @throws S3Error MalformedXML, InvalidArgument, InvalidTier, NotImplemented
 */
export async function readRestoreOrder(bytes: Buffer): Promise<RestoreOrder> {
  if (bytes.length === 0) return { days: 0, tier: 'Standard', description: '' }
  const root = await parseXml(bytes, 'RestoreRequest')
  requireChildren(root, 'RestoreRequest', { once: ['Days', 'GlacierJobParameters', 'Tier', 'Description', ...QUERY] })
  const query = QUERY.find((name) => root.children.has(name))
  if (query !== undefined) {
    throw new S3Error('NotImplemented', { message: `Objects cannot be queried: ${query} is not implemented.` })
  }
  return { days: readDays(root), tier: readTier(root), description: childText(root, 'Description') ?? '' }
}

function readDays(root: XmlNode): number {
  const text = childText(root, 'Days')
  if (text === undefined) return 0
  const days = wholeNumberText(text, 'Days')
  if (days >= 1 && days <= MAX_DAYS) return days
  throw new S3Error('InvalidArgument', {
    message: `Days must be from 1 to ${MAX_DAYS}.`,
    fields: { ArgumentName: 'Days', ArgumentValue: days },
  })
}

/** A restore has its tier in GlacierJobParameters, a query beside it; clients send both. */
function readTier(root: XmlNode): RestoreOrder['tier'] {
  const parameters = root.children.get('GlacierJobParameters')?.[0]
  if (parameters) requireChildren(parameters, 'GlacierJobParameters', { once: ['Tier'] })
  const inside = parameters && childText(parameters, 'Tier')
  if (parameters && inside === undefined) throw malformed('GlacierJobParameters needs Tier.')
  const beside = childText(root, 'Tier')
  if (inside !== undefined && beside !== undefined && inside !== beside)
    throw malformed('The Tier inside GlacierJobParameters differs from the Tier beside it.')
  const asked = inside ?? beside ?? 'Standard'
  const tier = TIERS.find((name) => name === asked)
  if (tier) return tier
  throw new S3Error('InvalidTier', { message: `There is no such tier; the tiers are ${TIERS.join(', ')}.` })
}
