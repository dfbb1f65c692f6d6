import type { Test } from 'tap'
import type { Identity } from '../../../src/api/identity.js'
import { runText } from '../../support/programs/run.js'

interface Where {
  readonly endpoint: string
  readonly owner: Pick<Identity, 'accessKeyId' | 'secretAccessKey'>
  /** Folder in which aws-cli finds its models. */
  readonly home: string
}

/** Runs commands of the aws-cli at this path. They resolve with their output, JSON; `failing` with what they say. */
export function jsonCommands(t: Test, path: string, { endpoint, owner, home }: Where) {
  const env = {
    HOME: home,
    AWS_ACCESS_KEY_ID: owner.accessKeyId,
    AWS_SECRET_ACCESS_KEY: owner.secretAccessKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_MAX_ATTEMPTS: '1',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_PAGER: '',
  }
  const run = (args: string[]) => runText(path, ['--endpoint-url', endpoint, '--output', 'json', ...args], env)
  const succeeding = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args)
    t.equal(code, 0, stderr)
    return stdout
  }
  const failing = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await run(args)
    t.not(code, 0, args.join(' '))
    return stderr
  }
  return Object.assign(succeeding, { failing })
}
