import t from 'tap'
import { checkConfiguration, classOf } from '../../../plugins/deal/configuration.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import { estimatePieceSize } from '../../../plugins/deal/terms/piece-size.js'
import { mostPieceBytes } from '../../../plugins/deal/terms/quote.js'
import { metadataTerms, resolveTerms, staysWithin } from '../../../plugins/deal/terms/resolve-terms.js'
import { costOf, divideUp, readTerms, type StatedTerms } from '../../../plugins/deal/terms/terms.js'
import type { S3Error } from '../../../src/common/errors/s3-error.js'
import { formatAmount, parseAmount } from '../../../src/index.js'

const whole: StatedTerms = { MinerId: 'f01000', Price: '0.000005', DurationEpochs: 518400 }

function failure(run: () => unknown): S3Error {
  try {
    run()
  } catch (error) {
    return error as S3Error
  }
  throw new Error('it did not throw')
}

t.test('the pieces of an offline deal are never more than what is reserved for them', (t) => {
  const GiB = 2 ** 30
  const object = 4.1 * GiB
  // Two of them do not fit into a CAR of 8 GiB, so that each is a piece of its own.
  for (const objects of [2, 3, 7, 100]) {
    const pieces = objects * estimatePieceSize(object, 1)
    t.ok(mostPieceBytes(objects * object, objects) >= pieces, `${objects} objects`)
  }
  t.equal(mostPieceBytes(object, 1), 8 * GiB)
  t.equal(mostPieceBytes(3000, 2), estimatePieceSize(3000, 2))
  t.end()
})

t.test('amounts are exact', (t) => {
  const same = ['0', '1', '0.000005', '123456789012345678901234.000000000000000001', '10.1']
  for (const text of same) t.equal(formatAmount(parseAmount(text) ?? -1n), text)
  t.equal(formatAmount(parseAmount('5e-6') ?? -1n), '0.000005')
  t.equal(formatAmount(parseAmount('1.5E-8') ?? -1n), '0.000000015')
  t.equal(formatAmount(parseAmount('0E-18') ?? -1n), '0')
  t.equal(formatAmount(parseAmount('1.50000000000000000000000') ?? -1n), '1.5')
  for (const text of [
    '',
    '-1',
    '+1',
    '.5',
    '1.',
    '0x1',
    '1e-19',
    '1 fil',
    'NaN',
    '1e400',
    '0.0000000000000000001',
    '१',
  ])
    t.equal(parseAmount(text), undefined, text)
  t.equal(divideUp(10n, 3n), 4n)
  t.equal(divideUp(9n, 3n), 3n)
  t.end()
})

t.test('terms are read as anybody may write them, and every violation is told', (t) => {
  t.same(readTerms(whole), {
    minerId: 'f01000',
    price: '0.000005',
    duration: 518400,
    verifiedDeal: false,
    fastRetrieval: true,
  })
  t.same(readTerms({ ...whole, Price: 5e-7, DurationEpochs: '1', VerifiedDeal: 'TRUE', FastRetrieval: 'false' }), {
    minerId: 'f01000',
    price: '0.0000005',
    duration: 1,
    verifiedDeal: true,
    fastRetrieval: false,
  })
  t.equal(costOf(readTerms(whole)), parseAmount('2.592'))
  const error = failure(() =>
    readTerms({
      MinerId: 'f0; rm -rf /',
      Price: '-1',
      DurationEpochs: '1.5',
      VerifiedDeal: 'perhaps',
      FastRetrieval: '1',
    }),
  )
  t.equal(error.code, 'DealTermsInvalid')
  t.equal((error.fields.Violations as string[]).length, 5)
  t.match(failure(() => readTerms({})).fields.Violations, [/^MinerId/, /^Price/, /^DurationEpochs/])
  for (const DurationEpochs of ['0', 0, '-5', '99999999999', '', 10_512_001])
    t.equal(failure(() => readTerms({ ...whole, DurationEpochs })).code, 'DealTermsInvalid', String(DurationEpochs))
  t.end()
})

t.test('each term comes from the first place that states it', (t) => {
  const defaults = { ...whole, MinerId: 'f0defaults' }
  const configuration = {
    Terms: [
      { MinerId: 'f0bucket', Price: '2' },
      { StorageClass: 'GLACIER' as const, MinerId: 'f0class' },
    ],
  }
  const metadata = { 'deal-terms': 'miner=f0metadata; price=3;fast=false' }
  const metadataAuthorized = true
  const miner = (sources: Parameters<typeof resolveTerms>[0]) => resolveTerms(sources).minerId
  t.equal(miner({ defaults }), 'f0defaults')
  t.equal(miner({ defaults, configuration }), 'f0bucket')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER' }), 'f0class')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER_IR' }), 'f0bucket')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER', metadata, metadataAuthorized }), 'f0metadata')
  t.equal(miner({ defaults, configuration, metadata, request: { MinerId: 'f0request' } }), 'f0request')
  t.same(
    resolveTerms({
      defaults,
      configuration,
      metadata,
      metadataAuthorized,
      request: { MinerId: '', DurationEpochs: 7 },
    }),
    {
      minerId: 'f0metadata',
      price: '3',
      duration: 7,
      verifiedDeal: false,
      fastRetrieval: false,
    },
  )
  t.equal(failure(() => resolveTerms({})).code, 'DealTermsRequired')
  t.equal(
    failure(() => resolveTerms({ request: {}, metadata: {}, configuration: {}, defaults: {} })).code,
    'DealTermsRequired',
  )
  t.equal(failure(() => resolveTerms({ request: { FastRetrieval: true } })).code, 'DealTermsInvalid')
  for (const text of ['miner', 'miner=a=b c', 'price=1;price=2', 'toString=1', 'miner=f01;speed=fast'])
    t.equal(failure(() => metadataTerms(text)).code, 'DealTermsInvalid', text)
  t.same(metadataTerms(' '), {})
  t.end()
})

t.test('metadata of a caller without the right counts as a whole, and only within the terms of the owner', (t) => {
  const owner = { MinerId: 'f01', Price: '2', DurationEpochs: 100 }
  for (const text of [
    '',
    'price=2',
    'price=1.9;duration=100',
    'miner=f01;duration=1;fast=false',
    'verified=false',
    'fast=true',
  ])
    t.equal(staysWithin(text, owner), true, text)
  for (const text of [
    ...['price=2.000000000000000001', 'price=-1', 'duration=101', 'duration=0', 'miner=f02', 'verified=true'],
    ...['price=1;duration=101', 'price=1;confirm=true', 'price=1;price=1', 'price', 'verified=perhaps'],
  ])
    t.equal(staysWithin(text, owner), false, text)
  t.equal(staysWithin('verified=true', { ...owner, VerifiedDeal: true }), true)
  t.equal(staysWithin('verified=false', { ...owner, VerifiedDeal: 'true' }), false, 'the full price instead of DataCap')
  t.equal(staysWithin('fast=true', { ...owner, FastRetrieval: false }), false)
  for (const text of ['price=0', 'duration=1', 'miner=f01']) t.equal(staysWithin(text, {}), false, `${text} of nothing`)
  t.end()
})

t.test('words for storage classes, and what a bucket may say of them', (t) => {
  const map = { FILECOIN: 'GLACIER', OFFLINE: 'GLACIER_IR' } as const
  t.equal(classOf('GLACIER', undefined, map), 'GLACIER')
  t.equal(classOf('FILECOIN', undefined, map), 'GLACIER')
  t.equal(
    classOf('FILECOIN', { StorageClassMap: [{ Word: 'FILECOIN', StorageClass: 'GLACIER_IR' }] }, map),
    'GLACIER_IR',
  )
  t.equal(classOf('STANDARD', undefined, map), undefined)
  t.equal(classOf('constructor', undefined, map), undefined)
  const bad = [
    { Terms: [{ MinerId: 'f01' }, { MinerId: 'f02' }] },
    { StorageClassMap: [{ Word: 'TAPE', StorageClass: 'GLACIER' as const }] },
    {
      StorageClassMap: [
        { Word: 'FILECOIN', StorageClass: 'GLACIER' as const },
        { Word: 'FILECOIN', StorageClass: 'GLACIER' as const },
      ],
    },
  ]
  for (const configuration of bad)
    t.equal(failure(() => checkConfiguration(configuration, map, 0)).code, 'InvalidArgument')
  t.doesNotThrow(() => checkConfiguration({ Terms: [{ MinerId: 'f01' }, { StorageClass: 'GLACIER' }] }, map, 0))
  t.end()
})

t.test('options have defaults, and refuse what they do not know', (t) => {
  t.match(dealOptions.parse({}), {
    eviction: 'off',
    maxSpendPerDay: '10',
    maxTimesAsk: 10,
    dealTimeoutSeconds: 21600,
    storageClassMap: {},
  })
  for (const options of [
    { term: {} },
    { terms: { minerId: 'f0 1' } },
    { terms: { price: '-1' } },
    { maxSpendPerDay: '1 fil' },
    { maxSpendPerDay: 1 },
    { maxTimesAsk: 0.5 },
    { maxTimesAsk: 'many' },
    { eviction: 'on' },
    { storageClassMap: { FILECOIN: 'STANDARD' } },
    { dealTimeoutSeconds: 0 },
  ])
    t.equal(dealOptions.safeParse(options).success, false, JSON.stringify(options))
  t.end()
})
