import t from 'tap'
import { Running, RunningById } from '../../common/running.js'

t.test('what is under way is found by its id until it is removed', async (t) => {
  const running = new Running<string>()
  const [one, other] = [running.add('one'), running.add('other')]
  t.equal(running.find(one), 'one')
  t.equal(running.find(other), 'other')
  t.same(running.all(), ['one', 'other'])
  t.equal(running.size, 2)
  t.equal(running.remove(one), true)
  t.equal(running.remove(one), false)
  t.equal(running.find(one), undefined)
  t.same(running.all(), ['other'])
  t.equal(running.size, 1)
})

t.test('a slot is used again, an id never', async (t) => {
  const running = new Running<number>()
  const ids = new Set<number>()
  for (let n = 0; n < 1000; n++) {
    const id = running.add(n)
    ids.add(id)
    t.equal(running.remove(id), true)
  }
  t.equal(ids.size, 1000)
  const last = running.add(1000)
  for (const id of ids) {
    if (running.find(id) !== undefined || running.remove(id)) t.fail(`${id} is the id of another value`)
  }
  t.equal(running.find(last), 1000)
  t.equal(last % 2 ** 20, 0, 'one slot is enough for one at a time')
})

t.test('an id that is made before its value takes its slot', async (t) => {
  const running = new Running<string>()
  const early = running.newId()
  const late = running.add('late')
  t.equal(running.find(early), undefined)
  running.put(early, 'early')
  t.same([running.find(early), running.find(late)], ['early', 'late'])
})

t.test('by ids of others, the newest of a slot is found', async (t) => {
  const client = new Running<string>()
  const first = client.add('first')
  client.remove(first)
  const second = client.add('second')
  const server = new RunningById<string>()
  server.add(first, 'first')
  server.add(second, 'second')
  t.equal(server.find(first), undefined)
  t.equal(server.find(second), 'second')
  t.equal(server.remove(first), false)
  t.same(server.all(), ['second'])
})
