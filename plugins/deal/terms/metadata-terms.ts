import { S3Error } from 'dealgate'
import { parseAmount } from './amounts.js'
import { isTrue, type StatedTerms, termsInvalid, violationsOf } from './terms.js'

/** Name of the metadata, which is sent as x-amz-meta-deal-terms. */
export const TERMS_METADATA = 'deal-terms'

const WORDS: Readonly<Record<string, keyof StatedTerms>> = {
  miner: 'MinerId',
  price: 'Price',
  duration: 'DurationEpochs',
  verified: 'VerifiedDeal',
  fast: 'FastRetrieval',
  confirm: 'ConfirmPrice',
}

/**
 * Parses `miner=f01;price=0.000005;duration=518400;verified=false;fast=true;confirm=true`. Throws DealTermsInvalid for
 * unknown or repeated words.
 */
export function metadataTerms(text: string | undefined): StatedTerms | undefined {
  if (text === undefined) return undefined
  const stated: Partial<Record<keyof StatedTerms, string>> = {}
  const violations: string[] = []
  for (const part of text.split(';')) {
    if (part.trim() === '') continue
    const [, word = '', value = ''] = /^\s*(\w+)\s*=\s*(\S+)\s*$/.exec(part) ?? []
    const name = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined
    if (name === undefined || stated[name] !== undefined)
      violations.push(
        `x-amz-meta-deal-terms is a list of ${Object.keys(WORDS).join(', ')}, each once, as in miner=f01000;price=0.000005;duration=518400.`,
      )
    else stated[name] = value
  }
  if (violations.length > 0) throw termsInvalid(violations.slice(0, 1))
  return stated
}

/**
 * True when these terms cost the owner no more than the owner's own in any respect: same provider, no higher price, no
 * longer duration, and no DataCap or unsealed copy that the owner does not want. False for a text that cannot be
 * parsed.
 * @param owner terms of the bucket and of the options, as far as they are stated
 */
export function staysWithin(text: string, owner: StatedTerms): boolean {
  const stated = readable(text)
  if (!stated || violationsOf(stated).length > 0) return false
  const { MinerId, Price, DurationEpochs, VerifiedDeal, FastRetrieval, ConfirmPrice } = stated
  return (
    (MinerId === undefined || MinerId === owner.MinerId) &&
    (Price === undefined || isAtMost(parseAmount(String(Price)), parseAmount(String(owner.Price)))) &&
    (DurationEpochs === undefined || isAtMost(Number(DurationEpochs), Number(owner.DurationEpochs))) &&
    (VerifiedDeal === undefined || isTrue(VerifiedDeal) === isTrue(owner.VerifiedDeal)) &&
    (FastRetrieval === undefined || !isTrue(FastRetrieval) || isTrue(owner.FastRetrieval ?? true)) &&
    ConfirmPrice === undefined
  )
}

function readable(text: string): StatedTerms | undefined {
  try {
    return metadataTerms(text)
  } catch (error) {
    if (error instanceof S3Error) return undefined
    throw error
  }
}

/** False when the owner states no value: no number is at most NaN. */
function isAtMost(value: number | bigint | undefined, most: number | bigint | undefined): boolean {
  return value !== undefined && most !== undefined && value <= most
}
