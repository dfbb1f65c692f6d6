import { OutcomeUnknown, S3Error } from 'dealgate'
import type { TaskParts } from '../parts.js'
import { AnswerLost } from '../platform-client.js'
import { inForm, successOf } from '../wire/answer.js'
import { namesOf, spelled } from '../wire/field-names.js'
import { wireCreated } from '../wire/records.js'
import { durationOf, type TaskTerms } from './terms.js'

export interface TaskPost {
  readonly terms: TaskTerms
  readonly csv: string | undefined
  readonly fileName: string | undefined
  readonly uuid: string
  readonly token: string | undefined
  readonly signal: AbortSignal
}

/** Answers by which the platform itself refuses a task. */
const REFUSED = ['InvalidArgument', 'PlatformRefused', 'ProviderRoleRequired', 'NoSuchProvider', 'SlowDown']

/**
 * Posts a task.
 * @throws TokenRefused and S3Error if certainly no task was created, OutcomeUnknown for every other answer
 */
export async function postTask(parts: TaskParts, post: TaskPost) {
  const { options, client } = parts
  const [field = 'file'] = namesOf('File', options.names)
  const file =
    post.csv === undefined ? undefined : { field, name: post.fileName ?? 'deals.csv', content: Buffer.from(post.csv) }
  const answer = await client
    .send({
      method: 'POST',
      path: ['tasks'],
      token: post.token,
      body: { kind: 'multipart', fields: spelled(fieldsOf(post), options.names), file },
      timeoutMs: options.createTimeoutSeconds * 1000,
      signal: post.signal,
    })
    .catch((error) => {
      if (error instanceof AnswerLost)
        throw new OutcomeUnknown('The answer of the task platform was lost.', { cause: error })
      throw error
    })
  try {
    const { data, message } = successOf(answer, { missing: () => new S3Error('NoSuchProvider') })
    return { ...inForm(data, wireCreated), message }
  } catch (error) {
    if (!(error instanceof S3Error) || REFUSED.includes(error.code)) throw error
    throw new OutcomeUnknown('The task platform gave an answer from which the outcome is not clear.', { cause: error })
  }
}

function fieldsOf({ terms, uuid }: TaskPost) {
  return {
    TaskName: terms.TaskName,
    CuratedDataset: terms.CuratedDataset,
    Description: terms.Description,
    IsPublic: terms.IsPublic ? '1' : '0',
    Type: terms.Type,
    MinerId: terms.MinerId,
    MinPrice: terms.MinPrice,
    MaxPrice: terms.MaxPrice,
    Tags: terms.Tags?.join(','),
    ExpireDays: terms.ExpireDays?.toString(),
    BidMode: terms.BidMode,
    FastRetrieval: terms.FastRetrieval?.toString(),
    SourceId: terms.SourceId?.toString(),
    Duration: durationOf(terms).toString(),
    Uuid: uuid,
  }
}
