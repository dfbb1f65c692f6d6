import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Dealgate } from '../server/dealgate.js'

/**
 * Environment for rclone in which the remote `dg` is this server, with an empty configuration in a folder of its own.
 * What does not work at once is to be seen.
 */
export async function rcloneEnv(
  server: Pick<Dealgate, 'endpoint' | 'region' | 'accessKey' | 'secretKey'>,
  home: string,
): Promise<Record<string, string>> {
  await writeFile(join(home, 'rclone.conf'), '')
  return {
    HOME: home,
    RCLONE_CONFIG: join(home, 'rclone.conf'),
    RCLONE_CONFIG_DG_TYPE: 's3',
    RCLONE_CONFIG_DG_PROVIDER: 'Other',
    RCLONE_CONFIG_DG_ENDPOINT: server.endpoint,
    RCLONE_CONFIG_DG_REGION: server.region,
    RCLONE_CONFIG_DG_ACCESS_KEY_ID: server.accessKey,
    RCLONE_CONFIG_DG_SECRET_ACCESS_KEY: server.secretKey,
    RCLONE_RETRIES: '1',
    // A command ends before it needs to free memory, and its start costs a fifth less.
    GOGC: 'off',
  }
}
