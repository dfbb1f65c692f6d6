import { join } from 'node:path'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { type Database, openDatabase, Writer } from '../database.js'

/**
 * Starts a service over the database in a folder that no other instance uses, and closes the database if that fails.
 * Rejects when the folder holds files of something else, and as `start` does.
 * @param name of the file
 * @param migrate brings its schema up to date
 */
export async function overDatabase<T>(
  folder: string,
  name: string,
  migrate: (db: Database) => void,
  start: (db: Database, writer: Writer) => Promise<T>,
): Promise<T> {
  makePrivateFolder(folder)
  const db = openDatabase(join(folder, name), '', migrate)
  const writer = new Writer(db)
  try {
    return await start(db, writer)
  } catch (error) {
    writer.close()
    db.close()
    throw error
  }
}
