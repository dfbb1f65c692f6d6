import t from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { document, element } from '../../../common/xml.js'
import { batch, done, reaches } from '../../support/plugins/batch-scene.js'
import { owner } from '../../support/plugins/deal-proxy.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms } from './archive-proxy.js'

t.test('deals for many objects stop at the cap of the day and go on the next one', async (t) => {
  await farFromMidnight()
  // Each deal costs 155.52 fil.
  const proxy = await ArchiveProxy.start(t, { maxSpendPerDay: '320' })
  const at = {
    get endpoint() {
      return proxy.endpoint
    },
    ...{ accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey, region: 'us-east-1' },
  }
  const keys = ['a', 'b', 'c', 'd', 'e']
  for (const key of keys) await proxy.put(key, { StorageClass: 'STANDARD' })
  const Filter = { Bucket: BUCKET, DealStates: ['None'] }
  const Deal = { MinerId: terms.minerId, Price: terms.price, DurationEpochs: terms.duration }
  const quoted = await done(at, { Operation: 'Deal', DryRun: true, Deal, Filter })
  t.match(quoted, { Status: 'Complete', TotalNumberOfTasks: 5, Price: '777.6', NumberOfTasksSucceeded: 0 })

  const waiting = await done(at, { Operation: 'Deal', ConfirmationRequired: true, Deal, Filter }, ['Suspended'])
  t.match(waiting, { Price: '777.6', NumberOfTasksSucceeded: 0 })
  await batch(at, 'POST', `/${waiting.JobId}/run`)
  const made = async () => (await proxy.host.own.jobs.list({ limit: 100, plugin: 'deal', status: 'Complete' })).length
  for (const [day, count] of [2, 4].entries()) {
    const capped = await until('the cap is reached', async () => {
      const { json } = await batch(at, 'GET', `/${waiting.JobId}`)
      return json.Waiting === 'WaitingForBudget' && json.NumberOfTasksSucceeded === count && json
    })
    t.match(capped, { Status: 'Paused', NumberOfTasksSucceeded: count, NumberOfTasksFailed: 0 }, `day ${day}`)
    t.equal(await made(), count)
    proxy.ahead += DAY_MS
    await batch(at, 'POST', `/${waiting.JobId}/resume`)
  }
  t.match(await reaches(at, waiting.JobId), { Status: 'Complete', NumberOfTasksSucceeded: 5, NumberOfTasksFailed: 0 })
  t.equal(await made(), 5, 'one deal for each object')

  proxy.ahead += DAY_MS
  const renewed = await done(at, { Operation: 'Renew', Filter: { Bucket: BUCKET, Prefixes: ['a'] } })
  t.match(renewed, { Status: 'Complete', NumberOfTasksSucceeded: 1 })
  t.match(await proxy.head('a'), { Metadata: { 'deal-count': '2' } })
  await proxy.put('new', { StorageClass: 'STANDARD' })
  const duration = terms.duration / 2
  const configuration = { Terms: [{ StorageClass: 'GLACIER', DurationEpochs: duration }] }
  await signedCall(proxy.endpoint, owner, 'POST', `/${BUCKET}?x-deal-config=`, { body: configuration })
  const prefixed = (Prefixes: string[]) => ({
    ...{ Operation: 'Archive', Archive: { StorageClass: 'GLACIER' } },
    Filter: { Bucket: BUCKET, Prefixes },
  })
  const estimated = await done(at, { ...prefixed(['a', 'new']), DryRun: true })
  t.match(estimated, { TotalNumberOfTasks: 2, NotEstimated: 0, Price: '77.76' }, 'on the terms of the class')
  const archived = await done(at, prefixed(['a', 'new']))
  t.match(archived, { Status: 'Complete', NumberOfTasksSucceeded: 2 })
  t.match(await proxy.ended('new'), { status: 'Complete', input: { terms: { duration } } })
  t.match(await proxy.head('a'), { Metadata: { 'deal-count': '2' } }, 'a deal holds it already')

  const byDefault = document('ApplyServerSideEncryptionByDefault', element('SSEAlgorithm', 'AES256'))
  const encryption = document('ServerSideEncryptionConfiguration', `<Rule>${byDefault}</Rule>`)
  const set = await signedCall(proxy.endpoint, owner, 'PUT', `/${BUCKET}?encryption=`, { body: encryption })
  t.equal(set.status, 200)
  const encrypted = await done(at, { ...prefixed(['a']), DryRun: true })
  t.match(encrypted, { NotEstimated: 0, Price: '77.76' }, 'the copy would be encrypted, and get a deal of its own')
})
