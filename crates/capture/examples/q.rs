use clearlane_capture::{files::*, *};
fn main(){ let f=std::fs::File::open(std::env::args().nth(1).unwrap()).unwrap();
 let mut r=Reader::open(Input::new(f)).unwrap(); let mut a=Analysis::new(1700000000_000_000_000,None); let c=std::env::args().nth(2).is_some();
 let mut n=0u64; while let Some(rec)=r.next().unwrap(){ n+=1; let d=dissect(&rec,c); a.add(rec.interface,rec.time_ns,&d);} println!("{n}"); }
