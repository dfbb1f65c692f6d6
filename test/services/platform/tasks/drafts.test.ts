import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase, Writer } from '../../../../src/services/database.js'
import { silentLog } from '../../../../src/services/log.js'
import type { PlatformContext } from '../../../../src/services/platform/context.js'
import { platformLimits } from '../../../../src/services/platform/limits.js'
import { migrate } from '../../../../src/services/platform/store.js'
import { postTask } from '../../../../src/services/platform/tasks/create-task.js'
import { DealTable } from '../../../../src/services/platform/tasks/deal-table.js'
import { Drafts, type NewTask, TaskTable } from '../../../../src/services/platform/tasks/task-table.js'
import { temporaryFolder } from '../../../support/content/folders.js'

const TASK: NewTask = {
  uuid: 'aaaaaaaa-0000-4000-8000-000000000000',
  user: 1,
  digest: '',
  name: 'nightly',
  description: '',
  curatedDataset: '',
  isPublic: false,
  type: null,
  minerId: 't01000',
  tags: [],
  minPrice: null,
  maxPrice: null,
  expireDays: null,
  fastRetrieval: true,
  bidMode: 'none',
  sourceId: null,
  duration: 518_400,
  fileName: 'deals.csv',
  created: 0,
  createdEpoch: 0,
  expiresEpoch: null,
  due: null,
}

function open(t: Test) {
  const db = openDatabase(join(temporaryFolder(t), 'platform.db'), '', migrate)
  const writer = new Writer(db)
  t.teardown(() => {
    writer.close()
    db.close()
  })
  return { writer, tasks: new TaskTable(db), deals: new DealTable(db) }
}

t.test('a removal of drafts leaves what is posted', async (t) => {
  const { writer, tasks, deals } = open(t)
  const drafts = new Drafts(tasks, writer)
  const add = (): number => {
    const id = tasks.draft(TASK)
    for (let n = 0; n < 3; n++) deals.add(id, { fileSourceUrl: `http://127.0.0.1/${n}.car` }, 0, false)
    return id
  }
  const posted = add()
  tasks.post(posted, { deals: 3, smallest: null, largest: null, sent: 0 })
  const draft = add()
  await drafts.remove(posted)
  await drafts.remove(draft)
  t.equal(deals.ofTask(posted, 10, 0).length, 3)
  t.match(tasks.find(posted), { deals: 3 })
  t.same(tasks.drafts(), [])
})

t.test('a refusal is explained, also when its draft cannot be removed', async (t) => {
  const { writer, tasks, deals } = open(t)
  const drafts = { remove: () => Promise.reject(new Error('The disk is full.')) }
  const context = {
    market: { tasks, deals, drafts },
    writer,
    network: { epoch: () => 0, epochSeconds: 30 },
    seconds: () => 0,
    limits: platformLimits,
    log: silentLog,
  } as unknown as PlatformContext
  const content = ['file_source_url\nhttp://127.0.0.1/1.car\n', 'no URL\n'].map((text) => Buffer.from(text))
  const request = { user: 1, terms: TASK, uuid: undefined, file: { name: '', content }, provider: undefined }
  await t.rejects(postTask(context, request), { status: 400, message: /^Row 3, column file_source_url/ })
})
