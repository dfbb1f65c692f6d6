import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { packageFolder } from '../../common/files/package-folder.js'
import { jobStatuses } from '../../src/plugins/jobs/document.js'

type Words = Readonly<Record<string, Readonly<Record<string, readonly [name: string, says: string]>>>>

const root = packageFolder()
const { words, events, wordOf } = (await import(pathToFileURL(join(root, 'console/lib/words.js')).href)) as {
  words: Words
  events: Readonly<Record<string, string>>
  wordOf(kind: string, state: string): { name: string; says: string } | undefined
}

/** The texts in quotes in a declaration of the server: from `begin` to `end`. */
function declared(file: string, begin: string, end: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const from = text.indexOf(begin)
  t.ok(from >= 0, `${file} has ${begin}`)
  return [...text.slice(from, text.indexOf(end, from)).matchAll(/'([A-Za-z ]+)'/g)].map(([, word = '']) => word)
}

t.test('each state that the server declares has a name and a sentence', async (t) => {
  const sources = ['services', 'plugins', 'src', 'common'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(root, folder, name)),
  )
  const deals = sources.flatMap((file) => readFileSync(file, 'utf8').match(/\bStorageDeal[A-Z][A-Za-z]+/g) ?? [])
  for (const [kind, states] of Object.entries({
    deal: [...deals, 'Recorded'],
    task: [...declared('services/platform/tasks/task.ts', 'export type TaskStatus', '\n\n'), 'Recorded'],
    taskDeal: [
      ...declared('services/platform/tasks/deal-table.ts', 'export const DEAL_ACTIVE', 'const GOES_ON'),
      ...declared('services/platform/tasks/deal-table.ts', 'export const TO_FETCH', '\n'),
      ...declared('services/platform/tasks/deal-table.ts', 'export function isFailure', '\n}'),
    ],
    bid: declared('services/platform/bids.ts', 'type BidStatus', '\n'),
    upload: [...declared('services/payment/uploads/upload-table.ts', 'type UploadStatus', '\n'), 'Processing'],
    job: [...jobStatuses, 'Incomplete', 'Refused'],
  })) {
    t.ok(states.length > 2, `${kind}: ${states.length}`)
    for (const state of new Set(states)) {
      const { name = '', says = '' } = wordOf(kind, state) ?? {}
      t.ok(name !== '' && says.endsWith('.'), `${kind} ${state}`)
    }
  }
})

t.test('and so has each event of an object', async (t) => {
  const all = ['plugins/deal/object-history.ts', 'plugins/pay/operations/history.ts'].flatMap((file) =>
    declared(file, 'const EVENTS', ']'),
  )
  t.ok(all.length > 20)
  for (const event of all) t.ok(events[event], event)
})

t.test('a name is plain: no word of an interface', async (t) => {
  for (const [kind, states] of Object.entries(words))
    for (const [state, [name]] of Object.entries(states)) t.notMatch(name, /StorageDeal|[a-z][A-Z]/, `${kind} ${state}`)
  t.equal(wordOf('deal', 'SomethingElse'), undefined)
  t.equal(wordOf('deal', 'constructor'), undefined)
})
