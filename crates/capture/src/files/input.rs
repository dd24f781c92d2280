//! The bytes of a file or a pipe, a bounded part of them at a time.

use std::io::{self, Read};

/// Bytes asked for at a time: they stay in a core's cache until they have been looked at.
const CHUNK: usize = 256 << 10;

/// What is read, from where reading has come to.
pub struct Input<'a> {
    from: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// What is there and not yet taken: a range of the buffer.
    start: usize,
    end: usize,
    /// Where in the file the buffer begins.
    offset: u64,
}

impl<'a> Input<'a> {
    /// Nothing read yet.
    pub fn new(from: impl Read + 'a) -> Self {
        let buffer = vec![0; CHUNK];
        Input { from: Box::new(from), buffer, start: 0, end: 0, offset: 0 }
    }

    /// How many bytes were taken so far.
    pub fn position(&self) -> u64 {
        self.offset + self.start as u64
    }

    /// The next `length` bytes, which are not taken; fewer where the file ends before.
    #[inline(always)]
    pub(super) fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        if self.end - self.start < length {
            self.fill(length)?;
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + length)])
    }

    /// The next `length` bytes, taken; nothing, and nothing taken, where the file ends before.
    #[inline(always)]
    pub(super) fn take(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        if self.end - self.start < length {
            self.fill(length)?;
            if self.end - self.start < length {
                return Ok(None);
            }
        }
        let start = self.start;
        self.start += length;
        Ok(Some(&self.buffer[start..self.start]))
    }

    #[cold]
    fn fill(&mut self, length: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        while self.end < length {
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
