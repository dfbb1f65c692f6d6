import t from 'tap'
import { MAX_ROWS, readTaskCsv, TaskFileError, type TaskRow, writeTaskCsv } from '../../../../services/platform/csv.js'
import { readTerms, respelled, taskForm } from '../../../../services/platform/tasks/terms.js'

const UUID = '0c5e4d4c-6f0c-4b4a-9c6f-3f7a5b1d2e90'
const PRIVATE = { task_name: 'nightly', is_public: '0', miner_id: 't01000' }
const PUBLIC = { task_name: 'holidays', is_public: '1', bid_mode: '1' }

function terms(form: Record<string, string>) {
  return readTerms(form)
}

t.test('the terms of a task', async (t) => {
  t.same(terms(PRIVATE), {
    name: 'nightly',
    curatedDataset: '',
    description: '',
    isPublic: false,
    type: null,
    minerId: 't01000',
    minPrice: null,
    maxPrice: null,
    tags: [],
    expireDays: null,
    bidMode: 'none',
    fastRetrieval: true,
    sourceId: null,
    duration: 1_512_000,
  })
  const given = {
    ...{ description: 'two\nlines', type: 'Verified', min_price: '0E-18', max_price: '0.000000000000000001' },
    ...{ tags: 'eu, backup,,eu', expire_days: '4', fast_retrieval: 'false', source_id: '3', duration: '518400' },
  }
  t.match(terms({ ...PUBLIC, ...given }), {
    ...{ description: 'two\nlines', type: 'verified', minPrice: 0n, maxPrice: 1n, tags: ['eu', 'backup'] },
    ...{ expireDays: 4, fastRetrieval: false, sourceId: 3, duration: 518_400, bidMode: 'auto' },
  })
  t.match(terms({ ...PRIVATE, verified_type: 'verified', expired_days: '7' }), { type: 'verified', expireDays: 7 })
  t.match(terms({ Task_Name: 'a', Is_Public: '1', Auto_bid: '0' }), { bidMode: 'manual' }, "the interface's words")
  t.match(terms({ task_name: 'a', is_public: '1' }), { bidMode: 'manual' }, 'clients older than bid modes')
  t.equal(taskForm.uuid.parse(respelled({ Uuid: UUID.toUpperCase() }).uuid), UUID)
  t.throws(() => readTerms({ ...PUBLIC, uuid: '1' }), /uuid must be a UUID/)
})

t.test('terms that are refused, with the field in the message', async (t) => {
  const refused: readonly [Record<string, string>, RegExp][] = [
    [{ ...PRIVATE, task_name: 'a'.repeat(129) }, /^task_name may have at most 128/],
    [{ ...PRIVATE, task_name: 'a\nb' }, /^task_name has control/],
    [{ ...PRIVATE, is_public: '2' }, /^is_public must be 1 or 0/],
    [{ ...PRIVATE, miner_id: '' }, /^miner_id is missing/],
    [{ ...PUBLIC, bid_mode: '3' }, /^bid_mode must be 0, 1 or 2/],
    [{ ...PUBLIC, Auto_bid: '0' }, /bid_mode and Auto_bid contradict/],
    [{ ...PUBLIC, miner_id: 't01000' }, /^miner_id contradicts is_public = 1/],
    [{ ...PUBLIC, type: 'regular', verified_type: 'verified' }, /type and verified_type contradict/],
    [{ ...PUBLIC, type: 'fast' }, /^type must be regular or verified/],
    [{ ...PUBLIC, tags: 'a,b,c,d,e,f' }, /at most 5 tags/],
    [{ ...PUBLIC, tags: 'fifteen letters' }, /at most 14 characters/],
    [{ ...PUBLIC, expire_days: '0' }, /^expire_days must be a whole number from 1/],
    [{ ...PUBLIC, max_price: '1E-19' }, /^max_price must be/],
    [{ ...PUBLIC, min_price: '0.2', max_price: '0.1' }, /^min_price is above max_price/],
    [{ ...PUBLIC, duration: '100' }, /^duration must be a whole number from 518400/],
    [{ ...PUBLIC, description: 'a'.repeat(4097) }, /^description may have at most/],
  ]
  for (const [form, message] of refused) {
    t.throws(() => terms(form), { name: 'HttpError', status: 400, message })
  }
})

const URL = 'http://127.0.0.1:9000/car/1.car'
const MD5 = '5d41402abc4b2a76b9719d911017c592'
const PAYLOAD = 'bafkreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
const DEAL = 'bafyreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
const PIECE = 'baga6ea4seaqaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'

async function* inPieces(text: string | Buffer, size = 7): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text as string)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(text: string | Buffer, size?: number): Promise<TaskRow[]> {
  const rows: TaskRow[] = []
  for await (const some of readTaskCsv(inPieces(text, size))) rows.push(...some)
  return rows
}

async function refusal(text: string | Buffer): Promise<string> {
  const [result] = await Promise.allSettled([read(text)])
  if (result.status === 'fulfilled') return ''
  if (!(result.reason instanceof TaskFileError)) throw result.reason
  return result.reason.message
}

t.test('the columns of every known client', async (t) => {
  const python = `uuid,miner_id,deal_cid,file_source_url,md5,start_epoch\n${UUID},t01000,${DEAL},${URL},${MD5},12\n`
  const row = { uuid: UUID, minerId: 't01000', dealCid: DEAL, fileSourceUrl: URL, md5: MD5, startEpoch: 12 }
  t.same(await read(python), [row])
  const gateway = `uuid,miner_id,deal_cid,payload_cid,file_source_url,md5,start_epoch\r\n${UUID},,,${PAYLOAD},${URL},,\r\n`
  t.same(await read(gateway), [{ uuid: UUID, payloadCid: PAYLOAD, fileSourceUrl: URL }])
  const go =
    'uuid,source_file_name,miner_id,deal_cid,payload_cid,file_source_url,md5,start_epoch,piece_cid,file_size,cost\n' +
    `${UUID},"a ""b"", c.txt",t01000,,${PAYLOAD},${URL},,0,${PIECE},2048,0.00000001\n`
  t.same(await read(go), [
    {
      uuid: UUID,
      sourceFileName: 'a "b", c.txt',
      minerId: 't01000',
      payloadCid: PAYLOAD,
      fileSourceUrl: URL,
      startEpoch: 0,
      pieceCid: PIECE,
      fileSize: 2048,
      cost: '0.00000001',
    },
  ])
})
t.test('errors name the row and the column', async (t) => {
  const head = 'uuid,file_source_url,md5,start_epoch,deal_cid,miner_id'
  const of = (...rows: string[]) => refusal([head, ...rows].join('\n'))
  t.equal(await refusal(''), 'The CSV is empty: its first row must name the columns.')
  t.equal(await refusal(`${head}\n`), 'The CSV has a header and no rows: each row is one deal.')
  t.match(await refusal(`uuid,md5\n${UUID},${MD5}`), /no column file_source_url/)
  t.match(await refusal(`file_source_url,md5,MD5\n${URL},,`), /column md5 twice/)
  t.equal(await of(`,${URL},,,,`, `,${URL},,,`), 'Row 3 has 5 fields, but the header names 6 columns.')
  t.match(await of(`,${URL},,,,`, ',,,,,'), /^Row 3, column file_source_url: /)
  t.match(await of(',ftp://host/file,,,,'), /^Row 2, column file_source_url: an http or https URL/)
  t.match(await of(`,${URL},,,12,`), /^Row 2, column deal_cid: a CID/)
  t.match(await of(`${UUID},${URL},,,,`, `,${URL},,,,`), /^Row 3, column uuid: all rows/)
  t.match(await of(`,${URL},,,${DEAL},`, `,${URL},,,${DEAL},`), /^Row 3, column deal_cid: an earlier row/)
  t.match(await refusal(`file_source_url,source_file_name\n${URL},"a\nb"`), /^Row 2, column source_file_name: /)
  t.match(await refusal(`file_source_url,source_file_name\n${URL},"a`), /^Row 2 has a quote without an end/)
  t.match(await refusal(`file_source_url,source_file_name\n${URL},"a"b`), /^Row 2 has a quote in the middle/)
  t.match(await refusal(`file_source_url\n${'x'.repeat(20_000)}`), /^Row 2 is longer than/)
  t.match(await refusal(Buffer.from(`file_source_url\n${URL}\xff`, 'latin1')), /not valid UTF-8/)
})

t.test('as many rows as are allowed, in bounded memory, and not one more', async (t) => {
  const PER_CHUNK = 500
  let ahead = 0
  let most = 0
  async function* rows(count: number): AsyncGenerator<Buffer> {
    yield Buffer.from('file_source_url,md5\n')
    for (let row = 0; row < count; row += PER_CHUNK) {
      const inChunk = Math.min(PER_CHUNK, count - row)
      ahead += inChunk
      most = Math.max(most, ahead)
      yield Buffer.from(`${URL}?${row},${MD5}\n`.repeat(inChunk))
    }
  }
  let count = 0
  const all = async (): Promise<void> => {
    for await (const some of readTaskCsv(rows(MAX_ROWS + 1))) {
      count += some.length
      ahead -= some.length
    }
  }
  await t.rejects(all(), /more than 100000 rows/)
  t.equal(count, MAX_ROWS, 'before the one that is too many')
  t.ok(most <= 2 * PER_CHUNK, `at most ${most} rows are held`)
})

t.test('written byte by byte, and read again', async (t) => {
  const rows: TaskRow[] = [
    { uuid: UUID, fileSourceUrl: `${URL}?a=1,2`, payloadCid: PAYLOAD, md5: MD5, pieceCid: PIECE, fileSize: 4096 },
    { uuid: UUID, fileSourceUrl: URL, sourceFileName: 'say "hi"', dealCid: DEAL, startEpoch: 7, cost: '0.5' },
  ]
  let text = ''
  for await (const chunk of writeTaskCsv(rows)) text += chunk
  t.equal(
    text,
    'uuid,source_file_name,miner_id,deal_cid,payload_cid,file_source_url,md5,start_epoch,piece_cid,file_size,cost\r\n' +
      `${UUID},,,,${PAYLOAD},"${URL}?a=1,2",${MD5},,${PIECE},4096,\r\n` +
      `${UUID},"say ""hi""",,${DEAL},,${URL},,7,,,0.5\r\n`,
  )
  t.same(await read(text), rows)
})
