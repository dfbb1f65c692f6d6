import t from 'tap'
import { until } from '../support/waiting.js'
import { CONTROLLED, STORED, Story } from './offline-story.js'

const ALL_HERE = ['GLACIER_IR', 'GLACIER_IR']

// The first test runs the script, each command of which costs a second of CPU time. The others send what it sends.

t.test('a folder is archived in an offline deal and brought back', async (t) => {
  const story = await Story.start(t)
  if (!story) return
  t.match(await story.storeWithWrongPassword(), 'refuses the sign-in')
  await story.store()
  await story.untilCold()
  const shown = await story.show()
  t.match(shown, /^Task: Completed\n/)
  t.match(shown, /\nBid: t01000\s+0\.0000005\s/)
  t.match(shown, /\nBid: t01005\s+0\.0000008\s/)
  t.match(shown, /\nDeal: t01000\s+DealActive/, 'the best bid has won')
  t.match(shown, /Objects on the gateway: 0\nObjects only in deals: 2\n$/)
  t.same(await story.restore(), STORED)
})

t.test('without a bidder the objects stay on the gateway', async (t) => {
  const story = await Story.start(t, CONTROLLED)
  if (!story) return
  await story.storeDirectly('0.000000000000000001')
  await story.advance(23)
  await story.untilTaskIs('ActionRequired')
  t.same(await story.classes(), ALL_HERE)
  t.same(await story.read(), STORED)
})

t.test('when the provider lies about the bytes, the gateway keeps its copies', async (t) => {
  const story = await Story.start(t, CONTROLLED)
  if (!story) return
  await story.storeDirectly()
  const provider = await story.untilDownloaded()
  await story.fault(provider, 'corrupts-data')
  await story.beginImport()
  await story.seal()
  const { server } = story
  const kept = 'an offline deal does not hold an object: it waits for the next one'
  await until('the server has seen it', () => server.log.split(kept).length > Object.keys(STORED).length)
  t.same(await story.classes(), ALL_HERE)
  t.same(await story.read(), STORED)
})

t.test('a provider that dies half-way goes on when it is back, also after a power failure', async (t) => {
  const story = await Story.start(t, CONTROLLED)
  if (!story) return
  await story.storeDirectly()
  const provider = await story.untilDownloaded()
  await story.fault(provider, 'offline')
  await story.beginImport()
  await story.untilDealIs('FileImporting')
  t.same(await story.read(), STORED, 'the gateway has the objects')
  await story.server.kill9()
  await story.server.start()
  await story.untilDealIs('FileImporting')
  await story.fault(provider, 'offline', false)
  await story.advance(1)
  await story.seal()
  await story.untilCold()
  t.same(await story.restoreDirectly(), STORED)
})
