//! Frames of a control connection: 4 bytes length, big-endian, 1 byte kind, and the content. A
//! frame that is too long is refused before anything of it is kept.

/// Most bytes of a frame's content.
pub const FRAME_BYTES_MAX: usize = 64 << 10;
const HEAD: usize = 5;

/// What a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A message as JSON.
    Message,
    /// A part of a log.
    Log,
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// What it holds.
    pub kind: Kind,
    /// That.
    pub content: Vec<u8>,
}

/// Why bytes are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than any frame.
    #[error("a control frame of {0} bytes; {FRAME_BYTES_MAX} are read")]
    Long(u32),
    /// A kind that there is not.
    #[error("a control frame of kind {0}, which there is not")]
    Kind(u8),
}

impl Kind {
    const fn number(self) -> u8 {
        match self {
            Kind::Message => b'M',
            Kind::Log => b'L',
        }
    }
}

impl Frame {
    /// Its bytes. Content beyond the limit is a fault of the caller.
    pub fn to_bytes(&self) -> Vec<u8> {
        assert!(self.content.len() <= FRAME_BYTES_MAX, "a frame of {} bytes", self.content.len());
        let mut bytes = Vec::with_capacity(HEAD + self.content.len());
        bytes.extend((self.content.len() as u32).to_be_bytes());
        bytes.push(self.kind.number());
        bytes.extend_from_slice(&self.content);
        bytes
    }
}

/// Bytes that came, cut into frames.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next frame, if it is whole. After an error nothing more can be read.
    pub fn take(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [a, b, c, d, kind] = *head;
        let length = u32::from_be_bytes([a, b, c, d]);
        if length as usize > FRAME_BYTES_MAX {
            return Err(FrameError::Long(length));
        }
        let kinds = [Kind::Message, Kind::Log];
        let known = kinds.into_iter().find(|known| known.number() == kind);
        let kind = known.ok_or(FrameError::Kind(kind))?;
        let Some(content) = rest.get(..length as usize) else { return Ok(None) };
        let content = content.to_vec();
        self.bytes.drain(..HEAD + content.len());
        Ok(Some(Frame { kind, content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_taken_however_they_are_cut(
            contents in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..6),
            cut in 1usize..50,
        ) {
            let kind = |log| if log { Kind::Log } else { Kind::Message };
            let frame = |(log, content)| Frame { kind: kind(log), content };
            let frames: Vec<Frame> = contents.into_iter().map(frame).collect();
            let bytes = frames.iter().flat_map(Frame::to_bytes).collect::<Vec<u8>>();
            let (mut inbox, mut taken) = (Inbox::default(), Vec::new());
            for piece in bytes.chunks(cut) {
                inbox.push(piece);
                while let Some(frame) = inbox.take().unwrap() {
                    taken.push(frame);
                }
            }
            prop_assert_eq!(taken, frames);
        }

        #[test]
        fn any_bytes_are_frames_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut inbox = Inbox::default();
            inbox.push(&bytes);
            while let Ok(Some(frame)) = inbox.take() {
                assert!(frame.content.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn giants_and_strangers_are_refused() {
        let mut inbox = Inbox::default();
        inbox.push(&[0xff, 0xff, 0xff, 0xff, b'M']);
        assert_eq!(inbox.take(), Err(FrameError::Long(u32::MAX)));
        let mut inbox = Inbox::default();
        inbox.push(b"\0\0\0\0G");
        assert_eq!(inbox.take(), Err(FrameError::Kind(b'G')));
    }
}
