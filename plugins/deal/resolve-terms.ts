import { S3Error } from '../../src/errors/s3-error.js'
import type { DealConfiguration } from './configuration.js'
import { type DealTerms, hasTerms, readTerms, type StatedTerms, termNames, termsInvalid } from './terms.js'

/** Where terms may stand, the one that counts most first. */
export interface TermSources {
  /** Of the call. */
  readonly request?: StatedTerms | undefined
  /** User metadata of the object: `deal-terms` is read, which is sent as x-amz-meta-deal-terms. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Of the bucket. */
  readonly configuration?: DealConfiguration | undefined
  /** The class the object is to be in: the bucket may have terms of its own for it. */
  readonly storageClass?: string | undefined
  /** Of the plugin's options. */
  readonly defaults?: StatedTerms | undefined
}

/** Takes each term from the first place that states it. Throws DealTermsRequired where none states any, DealTermsInvalid when what they state together is no deal. */
export function resolveTerms(sources: TermSources): DealTerms {
  const stated = statedBy(sources)
  if (!hasTerms(stated))
    throw new S3Error('DealTermsRequired', {
      message:
        'Nothing says on what terms the deal is to be made. State MinerId, Price and DurationEpochs in the request, in x-amz-meta-deal-terms of the object, in the ' +
        "bucket's deal configuration (?x-deal-config=) or in the options of the plugin.",
    })
  return readTerms(stated)
}

/** Each term from the first place that states it, unread, as far as there is one. Throws DealTermsInvalid for metadata that cannot be made out. */
export function statedBy(sources: TermSources): StatedTerms {
  const { request, metadata, configuration, storageClass, defaults } = sources
  const ofBucket = configuration?.Terms ?? []
  const places = [
    request,
    metadataTerms(metadata?.['deal-terms']),
    ...(storageClass === undefined ? [] : [ofBucket.find((terms) => terms.StorageClass === storageClass)]),
    ofBucket.find((terms) => terms.StorageClass === undefined),
    defaults,
  ]
  const stated: Record<string, unknown> = {}
  for (const name of termNames) stated[name] = places.find((place) => isStated(place?.[name]))?.[name]
  return stated
}

/** An empty form field or element states nothing. */
function isStated(value: unknown): boolean {
  return value !== undefined && value !== ''
}

const WORDS: Readonly<Record<string, keyof StatedTerms>> = {
  miner: 'MinerId',
  price: 'Price',
  duration: 'DurationEpochs',
  verified: 'VerifiedDeal',
  fast: 'FastRetrieval',
}

/** Reads `miner=f01;price=0.000005;duration=518400;verified=false;fast=true`. Throws DealTermsInvalid for anything it does not know. */
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
