import { parseAmount, S3Error } from 'dealgate/plugin'
import type { DealConfiguration } from '../configuration.js'
import {
  type DealTerms,
  hasTerms,
  isTrue,
  readTerms,
  type StatedTerms,
  termNames,
  termsInvalid,
  violationsOf,
} from './terms.js'

/** Sources of terms, in order of precedence. */
export interface TermSources {
  readonly request?: StatedTerms | undefined
  /** User metadata of the object, of which `deal-terms` is read (sent as x-amz-meta-deal-terms). */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /**
   * True when the caller who stored the metadata held the right to make deals. Otherwise the metadata can only lower
   * what the owner of the bucket pays. Default false.
   */
  readonly metadataAuthorized?: boolean | undefined
  readonly configuration?: DealConfiguration | undefined
  /** Storage class of the object: the bucket may have separate terms for it. */
  readonly storageClass?: string | undefined
  readonly defaults?: StatedTerms | undefined
}

/**
 * Takes each term from the first source that states it. Throws DealTermsRequired when no source states any,
 * DealTermsInvalid when the result is no valid deal.
 */
export function resolveTerms(sources: TermSources): DealTerms {
  const { stated, passedOver } = statedBy(sources)
  if (hasTerms(stated)) return readTerms(stated)
  throw new S3Error('DealTermsRequired', {
    message:
      'No terms are stated for the deal. State MinerId, Price and DurationEpochs in the request, in x-amz-meta-deal-terms of the object, in the ' +
      `bucket's deal configuration (?x-deal-config=) or in the options of the plugin.${passedOver ? ` ${PASSED_OVER}` : ''}`,
  })
}

/** The reason why the terms of an object do not count. */
export const PASSED_OVER =
  'The x-amz-meta-deal-terms of this object do not count: the caller who stored it did not hold the action deal:CreateObjectDeal, and they go beyond the terms of the ' +
  'bucket and of the server.'

export interface StatedTogether {
  readonly stated: StatedTerms
  /** The source of the price, or the request, confirms the price, however high it is above what the provider asks. */
  readonly priceConfirmed: boolean
  /** The object states terms that do not count. */
  readonly passedOver: boolean
}

/**
 * Takes each term from the first source that states it, without parsing. Throws DealTermsInvalid for metadata that
 * counts and cannot be parsed.
 */
export function statedBy(sources: TermSources): StatedTogether {
  const { request, configuration, storageClass, defaults } = sources
  const ofBucket = configuration?.Terms ?? []
  const owners = [
    ...(storageClass === undefined ? [] : [ofBucket.find((terms) => terms.StorageClass === storageClass)]),
    ofBucket.find((terms) => terms.StorageClass === undefined),
    defaults,
  ]
  const text = sources.metadata?.['deal-terms']
  const counts = sources.metadataAuthorized === true || (text !== undefined && staysWithin(text, firstOf(owners)))
  const ofObject = counts ? metadataTerms(text) : undefined
  const places = [request, ofObject, ...owners]
  // When a caller without the right states a lower price, the owner's confirmation of the higher price applies.
  const confirming = sources.metadataAuthorized === true ? places : [request, ...owners]
  const confirmed = confirming.find((place) => isStated(place?.Price))?.ConfirmPrice
  const violations = [request?.ConfirmPrice, confirmed].flatMap((ConfirmPrice) => violationsOf({ ConfirmPrice }))
  if (violations.length > 0) throw termsInvalid(violations)
  return {
    stated: firstOf(places),
    priceConfirmed: isTrue(request?.ConfirmPrice) || isTrue(confirmed),
    passedOver: text !== undefined && !counts,
  }
}

function firstOf(places: readonly (StatedTerms | undefined)[]): StatedTerms {
  const stated: Record<string, unknown> = {}
  for (const name of termNames) stated[name] = places.find((place) => isStated(place?.[name]))?.[name]
  return stated
}

/** An empty form field or element states nothing. */
function isStated(value: unknown): boolean {
  return value !== undefined && value !== ''
}

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
function metadataTerms(text: string | undefined): StatedTerms | undefined {
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
function staysWithin(text: string, owner: StatedTerms): boolean {
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
