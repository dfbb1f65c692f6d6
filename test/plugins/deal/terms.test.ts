import t from 'tap'
import { divideUp, formatAmount, parseAmount } from '../../../plugins/deal/amounts.js'
import { checkConfiguration, classOf } from '../../../plugins/deal/configuration.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import { metadataTerms, resolveTerms } from '../../../plugins/deal/resolve-terms.js'
import { costOf, readTerms, type StatedTerms } from '../../../plugins/deal/terms.js'
import type { S3Error } from '../../../src/errors/s3-error.js'

const whole: StatedTerms = { MinerId: 'f01000', Price: '0.000005', DurationEpochs: 518400 }

function failure(run: () => unknown): S3Error {
  try {
    run()
  } catch (error) {
    return error as S3Error
  }
  throw new Error('it did not throw')
}

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
  const miner = (sources: Parameters<typeof resolveTerms>[0]) => resolveTerms(sources).minerId
  t.equal(miner({ defaults }), 'f0defaults')
  t.equal(miner({ defaults, configuration }), 'f0bucket')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER' }), 'f0class')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER_IR' }), 'f0bucket')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER', metadata }), 'f0metadata')
  t.equal(miner({ defaults, configuration, metadata, request: { MinerId: 'f0request' } }), 'f0request')
  t.same(resolveTerms({ defaults, configuration, metadata, request: { MinerId: '', DurationEpochs: 7 } }), {
    minerId: 'f0metadata',
    price: '3',
    duration: 7,
    verifiedDeal: false,
    fastRetrieval: false,
  })
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
    t.equal(failure(() => checkConfiguration(configuration, map)).code, 'InvalidArgument')
  t.doesNotThrow(() => checkConfiguration({ Terms: [{ MinerId: 'f01' }, { StorageClass: 'GLACIER' }] }, map))
  t.end()
})

t.test('options have defaults, and refuse what they do not know', (t) => {
  t.match(dealOptions.parse({}), { eviction: 'off', dealTimeoutSeconds: 21600, storageClassMap: {} })
  for (const options of [
    { term: {} },
    { terms: { minerId: 'f0 1' } },
    { terms: { price: '-1' } },
    { maxSpendPerDay: '1 fil' },
    { maxSpendPerDay: 1 },
    { eviction: 'on' },
    { storageClassMap: { FILECOIN: 'STANDARD' } },
    { dealTimeoutSeconds: 0 },
  ])
    t.equal(dealOptions.safeParse(options).success, false, JSON.stringify(options))
  t.end()
})
