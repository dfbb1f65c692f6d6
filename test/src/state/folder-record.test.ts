import t from 'tap'
import { FolderRecord, readFolderRecord } from '../../../src/state/folder-record.js'
import { temporaryFolder } from '../../support/content/folders.js'

t.test('servers of one folder keep the highest mark that one of them has seen', async (t) => {
  const folder = temporaryFolder(t)
  const first = await FolderRecord.open(folder)
  const second = await FolderRecord.open(folder)
  t.equal(first.id, second.id)
  const identity = (mark: number) => ({ epoch: 'store', over: [], mark })
  await first.setStore(identity(3))
  await second.setStore(identity(3))
  await first.setStore(identity(10))
  await second.setStore(identity(5))
  t.match(await readFolderRecord(folder), { epoch: 'store', mark: 10 })
  t.equal(second.kept.mark, 10)
  await second.setStore(identity(11))
  t.match(await readFolderRecord(folder), { epoch: 'store', mark: 11 })
  await second.setStore({ epoch: 'another', over: ['store'], mark: 1 })
  t.match(await readFolderRecord(folder), { epoch: 'another', mark: 1 })
})
