import { readFileSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { makeFolders, writePrivateFile } from '../common/files/private-file.js'
import { Failure } from './command.js'
import { variable } from './config/config.js'

interface AwsFiles {
  readonly config: string
  readonly credentials: string
}

export function awsFiles(): AwsFiles {
  const folder = join(homedir(), '.aws')
  return {
    config: variable('AWS_CONFIG_FILE') ?? join(folder, 'config'),
    credentials: variable('AWS_SHARED_CREDENTIALS_FILE') ?? join(folder, 'credentials'),
  }
}

interface AwsProfile {
  readonly name: string
  readonly endpoint: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
}

/** Members of the configuration that make aws-cli take other credentials than those of the credentials file. */
const OTHER_SOURCES = [
  'role_arn',
  'source_profile',
  'credential_source',
  'credential_process',
  'web_identity_token_file',
  'sso_session',
  'sso_start_url',
  'sso_account_id',
  'login_session',
]

/** Access key ids that the S3 endpoint issues for sessions. */
const TEMPORARY = /^DGS[A-Z2-7]{17}$/

/**
 * Throws Failure when the profile has credentials that a login did not write.
 * @param name of the profile
 */
export function refuseForeignProfile(files: AwsFiles, name: string): void {
  const keys = readSection(read(files.credentials), name)
  const settings = readSection(read(files.config), sectionOf(name))
  const key = keys?.get('aws_access_key_id') ?? settings?.get('aws_access_key_id')
  const other = OTHER_SOURCES.find((member) => settings?.has(member) || keys?.has(member))
  const foreign = other ?? (key !== undefined && !TEMPORARY.test(key) ? 'aws_access_key_id' : undefined)
  if (foreign === undefined) return
  throw new Failure(
    `The profile ${name} of aws-cli has credentials of its own (${foreign}). Choose another with --profile, or replace them with --force.`,
  )
}

/** The key pair of a profile; temporary if it has a session token. Throws Failure when it has none of its own. */
export function readAwsProfile(
  files: AwsFiles,
  name: string,
): Partial<AwsProfile> & Pick<AwsProfile, 'accessKeyId' | 'secretAccessKey'> {
  const settings = readSection(read(files.config), sectionOf(name))
  const keys = readSection(read(files.credentials), name)
  const member = (text: string) => keys?.get(text) ?? settings?.get(text)
  const accessKeyId = member('aws_access_key_id')
  const secretAccessKey = member('aws_secret_access_key')
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new Failure(
      `The profile ${name} of aws-cli has no key pair in ${files.credentials}: dealgate login writes one.`,
    )
  }
  const sessionToken = member('aws_session_token')
  const endpoint = settings?.get('endpoint_url')
  const region = settings?.get('region')
  return {
    ...{ name, accessKeyId, secretAccessKey },
    ...(sessionToken !== undefined && { sessionToken }),
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
  }
}

/** Writes the profile into the files of aws-cli. Other profiles and all comments stay as they are. */
export function writeAwsProfile(files: AwsFiles, profile: AwsProfile): void {
  const absent = Object.fromEntries(OTHER_SOURCES.map((member) => [member, undefined]))
  change(files.credentials, profile.name, {
    ...absent,
    aws_access_key_id: profile.accessKeyId,
    aws_secret_access_key: profile.secretAccessKey,
    aws_session_token: profile.sessionToken,
  })
  change(files.config, sectionOf(profile.name), {
    ...absent,
    aws_access_key_id: undefined,
    aws_secret_access_key: undefined,
    aws_session_token: undefined,
    region: profile.region,
    endpoint_url: profile.endpoint,
  })
}

function sectionOf(name: string): string {
  return name === 'default' ? name : `profile ${name}`
}

function change(file: string, section: string, members: Parameters<typeof changeSection>[2]): void {
  makeFolders(dirname(file))
  writePrivateFile(targetOf(file), changeSection(read(file), section, members))
}

/** The file that a link leads to, so that the link stays. */
function targetOf(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new Failure(`Cannot read ${file}: ${(error as Error).message}`, { cause: error })
  }
}

/** Members of a section; undefined removes one. */
type SectionMembers = Readonly<Record<string, string | undefined>>

const HEADER = /^\s*\[\s*(.*?)\s*\]/
const MEMBER = /^([^\s#;[=:][^=:]*?)\s*[=:]\s*(.*?)\s*$/

/** The members of a section of an INI file, as aws-cli reads it; undefined when the file has no such section. */
function readSection(text: string, section: string): ReadonlyMap<string, string> | undefined {
  const lines = linesOf(text)
  const place = find(lines, section)
  if (!place) return undefined
  const members = lines.slice(place.start + 1, place.end).map((line) => MEMBER.exec(line))
  return new Map(members.flatMap((member) => (member ? [[member[1] ?? '', member[2] ?? '']] : [])))
}

/**
 * Changes members of one section, and adds the section at the end when there is none. Every other line stays as it is:
 * other sections, comments, and members of this section that are not named.
 */
export function changeSection(text: string, section: string, members: SectionMembers): string {
  const lines = linesOf(text)
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const place = find(lines, section)
  const wanted = Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  if (!place) {
    const before = text === '' || text.endsWith('\n') ? text : text + newline
    const gap = before === '' || /(^|\n)\s*\n$/.test(before) ? '' : newline
    return before + gap + [`[${section}]`, ...wanted.map(([name, value]) => `${name} = ${value}`), ''].join(newline)
  }
  const left = new Map(wanted as [string, string][])
  const changed: string[] = []
  let drops = false
  for (const line of lines.slice(place.start + 1, place.end)) {
    // An indented line belongs to the member before it.
    if (drops && /^\s+\S/.test(line)) continue
    drops = false
    const name = MEMBER.exec(line)?.[1]
    if (name === undefined || !Object.hasOwn(members, name)) {
      changed.push(line)
      continue
    }
    drops = true
    const value = left.get(name)
    if (value !== undefined) changed.push(`${name} = ${value}${newline}`)
    left.delete(name)
  }
  let at = changed.length
  while (at > 0 && /^\s*([#;].*)?\s*$/.test(changed[at - 1] ?? '')) at--
  const added = [...left].map(([name, value]) => `${name} = ${value}${newline}`)
  const start = [...lines.slice(0, place.start + 1), ...changed.slice(0, at)]
  const last = start.length - 1
  if (added.length > 0 && !start[last]?.endsWith('\n')) start[last] += newline
  return [...start, ...added, ...changed.slice(at), ...lines.slice(place.end)].join('')
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\n)/)
}

function find(lines: readonly string[], section: string): { readonly start: number; readonly end: number } | undefined {
  const nameOf = (line: string) => HEADER.exec(line)?.[1]?.replace(/\s+/g, ' ').replaceAll('"', '')
  const start = lines.findIndex((line) => nameOf(line) === section)
  if (start < 0) return undefined
  const next = lines.findIndex((line, n) => n > start && nameOf(line) !== undefined)
  return { start, end: next < 0 ? lines.length : next }
}
